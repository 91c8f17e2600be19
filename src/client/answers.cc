#include "client/answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "client/run_stream.h"
#include "client/server_access.h"

namespace reprise {

TypedLine ParseTyped(const std::string& line) {
  if (line.starts_with("//")) return {.text = line.substr(1)};
  const std::string word = line.substr(0, line.find_first_of(" \n"));
  // No command has a further slash in its name: a path.
  if (!word.starts_with('/') || word.find('/', 1) != std::string::npos) return {.text = line};
  return {.command = word, .text = line.substr(std::min(word.size() + 1, line.size()))};
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
  const std::string &reason = given.error().reason, &message = given.error().message;
  if (is_repeated && reason == "already_processed") return {};  // most likely by the first of the two
  if (reason == "stale") return {Became::kStale, message};
  for (const char* settled : {"already_processed", "not_found", "no_such_approval", "no_such_request"}) {
    if (reason == settled) return {Became::kTooLate, message};
  }
  return {HowLost(given.error()) == Loss::kNone ? Became::kRefused : Became::kLost, message};
}

}  // namespace reprise
