#include "client/answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "client/run_stream.h"
#include "client/server_access.h"

namespace reprise {

TypedLine ParseTyped(const std::string& line) {
  if (line.starts_with("//")) return {.text = line.substr(1)};
  const std::string word = line.substr(0, line.find_first_of(" \n"));
  // A second slash makes it a path, because no command has one in its name.
  if (!word.starts_with('/') || word.find('/', 1) != std::string::npos) return {.text = line};
  return {.command = word, .text = line.substr(std::min(word.size() + 1, line.size()))};
}

Result<std::optional<ExpandedCommand>> ExpandFolderCommand(ServerLink& link, const std::string& query,
                                                           const TypedLine& typed) {
  if (typed.command.size() < 2) return std::optional<ExpandedCommand>();
  const auto expanded = link.Call("POST", "/instructions/expand" + query,
                                  {{"command", typed.command.substr(1)}, {"arguments", typed.text}});
  // An older server has no such route, and not every user may use it.
  const auto is_missing = [](const Error& error) {
    return error.Is(Reason::kNoSuchCommand) || error.Is(Reason::kNotFound) || error.Is(Reason::kOperatorOnly);
  };
  if (!expanded && is_missing(expanded.error())) return std::optional<ExpandedCommand>();
  if (!expanded) return Fail(expanded.error());
  return std::optional(ExpandedCommand{TextMember(*expanded, "user_message"), TextMember(*expanded, "model")});
}

std::string FolderQuery(const ServerLink& link) {
  return link.folder().empty() ? std::string() : "?workspace=" + PercentEncoded(link.folder());
}

Json AnswerTo(const event::ApprovalRequired& asked, bool approved) {
  return {{"approval_id", asked.approval_id}, {"approved", approved}, {"arguments_digest", asked.arguments_digest}};
}

Json AnswerTo(const event::InputRequired& asked, std::optional<Json> response) {
  if (!response) return {{"request_id", asked.request_id}, {"declined", true}};
  return {{"request_id", asked.request_id}, {"response", *std::move(response)}};
}

AnswerOutcome GiveAnswer(ServerLink& link, const PendingQuestion& question, const Json& body) {
  using Became = AnswerOutcome::Became;
  const bool is_approval = std::holds_alternative<PendingApproval>(question);
  const std::string path = RunPath(QuestionRun(question)) + (is_approval ? "/approve" : "/respond");
  auto given = link.Call("POST", path, body);
  const bool is_repeated = !given && HowLost(given.error()) == Loss::kBroken;
  if (is_repeated) given = link.Call("POST", path, body);
  if (given) return {};
  const Error& why = given.error();
  if (is_repeated && why.Is(Reason::kAlreadyProcessed)) return {};  // most likely by our first request
  if (why.Is(Reason::kStale)) return {Became::kStale, why.message};
  for (const Reason settled :
       {Reason::kAlreadyProcessed, Reason::kNotFound, Reason::kNoSuchApproval, Reason::kNoSuchRequest}) {
    if (why.Is(settled)) return {Became::kTooLate, why.message};
  }
  return {HowLost(why) == Loss::kNone ? Became::kRefused : Became::kLost, why.message};
}

Result<std::string> FindModel(const std::string& text, const Json& models, const std::string& hint) {
  constexpr std::size_t kMostNamed = 5;
  const std::string provider = text.substr(0, text.find('/') + 1), wanted = LowerCase(text);
  std::vector<std::string> names, similar;
  std::set<std::string> providers;
  for (const Json& model : MemberOf(models, "models")) {
    const std::string name = TextMember(model, "name");
    if (name == text || (!provider.empty() && name.starts_with(provider))) return text;
    if (LowerCase(name).find(wanted) != std::string::npos) similar.push_back(name);
    providers.insert(name.substr(0, name.find('/')));
    names.push_back(name);
  }
  if (similar.size() == 1) return similar.front();
  std::string list;
  const auto add = [&](const std::string& name) { list += (list.empty() ? "" : ", ") + VisibleLine(name); };
  if (!similar.empty()) {
    const std::size_t count = similar.size();
    similar.resize(std::min(count, kMostNamed));
    std::ranges::for_each(similar, add);
    return Fail(ErrorCode::kConflict, "\"" + text + "\" means any of " + Counted(count, "model") + ": " + list +
                                          (count > kMostNamed ? ", ..." : "") + " (" + hint + ")");
  }
  std::ranges::for_each(providers, add);
  return Fail(ErrorCode::kNotFound, "no model is called " + text +
                                        (provider.empty() ? DidYouMean(text, names) : "; the providers are: " + list) +
                                        " (" + hint + ")");
}

}  // namespace reprise
