// Cline: a task's folder, with the messages of Anthropic's API and what its interface showed.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// A person's text without what the tool tells the model of the workspace.
std::string WithoutDetails(std::string text) {
  constexpr std::string_view kBegin = "<environment_details>", kEnd = "</environment_details>";
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd, begin == std::string::npos ? 0 : begin);
  if (begin != std::string::npos && end != std::string::npos) text.erase(begin, end + kEnd.size() - begin);
  for (const std::string_view tag :
       {"<task>", "</task>", "<feedback>", "</feedback>", "<user_message>", "</user_message>"}) {
    if (const std::size_t at = text.find(tag); at != std::string::npos) text.erase(at, tag.size());
  }
  return std::string(Trimmed(text));
}

// What the tool tells the model of its own: how it wants lists of tasks, or that the task goes on.
bool IsOfTool(std::string_view text) {
  text = Trimmed(text);
  return text.starts_with("# task_progress") || text.starts_with("# TODO LIST") ||
         text.starts_with("[TASK RESUMPTION]") || text.starts_with("[ERROR] You did not use a tool");
}

// A call that waits for its result.
struct OpenCall {
  std::string id, name;
};

// Newer versions tell the results of calls as texts, in their order: "[read_file for 'a.cc'] Result:", and what it is.
std::optional<MovedMessage> ResultIn(const std::string& text, std::vector<OpenCall>& open) {
  constexpr std::string_view kResult = "] Result:";
  if (open.empty()) return std::nullopt;
  const auto [id, name] = open.front();
  MovedMessage result{.kind = Kind::kResult, .text = text, .call_id = id};
  const std::size_t end = text.find(kResult);
  const bool names_it = text.starts_with("[" + name) || (name == "use_subagents" && text.starts_with("[subagents"));
  result.is_error = text.starts_with("Tool [" + name + "] was not executed");
  if (!result.is_error && (!names_it || end == std::string::npos)) return std::nullopt;
  if (!result.is_error) result.text = std::string(Trimmed(text.substr(end + kResult.size())));
  open.erase(open.begin());
  return result;
}

// A message without these results and what the tool tells; the results join `results`.
Json WithoutResults(const Json& content, std::vector<OpenCall>& open, std::vector<MovedMessage>& results,
                    LeftOut& left_out) {
  const Json blocks = content.is_string() ? Json::array({{{"type", "text"}, {"text", content}}}) : content;
  Json kept = Json::array();
  for (const Json& block : blocks.is_array() ? blocks : Json::array()) {
    const std::string text = TextMember(block, "type") == "text" ? TextMember(block, "text") : "";
    std::erase_if(open, [&](const OpenCall& call) { return call.id == TextMember(block, "tool_use_id"); });
    if (auto result = ResultIn(text, open)) {
      results.push_back(*std::move(result));
    } else if (IsOfTool(text)) {
      left_out.Add("message that the tool added by itself");
    } else if (text.empty()) {
      kept.push_back(block);
    } else if (std::string said = WithoutDetails(text); !said.empty()) {
      kept.push_back({{"type", "text"}, {"text", std::move(said)}});
    }
  }
  return kept;
}

Json FileBeside(const std::string& path, const char* name) {
  return ReadForeignJson((std::filesystem::path(path).parent_path() / name).string()).value_or(Json());
}

// The tokens of each request, as the interface was told of them.
std::vector<MovedMessage> RequestsIn(const Json& shown) {
  std::vector<MovedMessage> requests;
  for (const Json& each : shown.is_array() ? shown : Json::array()) {
    if (TextMember(each, "say") != "api_req_started") continue;
    const auto told = ParseForeignJson(TextMember(each, "text"), {});
    if (!told) continue;
    MovedMessage request{.at = TimeIn(MemberOf(each, "ts"))};
    request.usage = UsageOf(CountIn(*told, "tokensIn"), CountIn(*told, "tokensOut"), CountIn(*told, "cacheReads"),
                            CountIn(*told, "cacheWrites"));
    requests.push_back(std::move(request));
  }
  return requests;
}

// The request that an answer is from: of the next ones, some of which may have failed, the first that had as many
// tokens as the message says; just the next if it says nothing. Without one there is what the message says, which tells
// the cache's tokens as one number.
MovedMessage RequestOf(const Json& message, const std::vector<MovedMessage>& requests, std::size_t& next) {
  const Json& tokens = MemberOf(MemberOf(message, "metrics"), "tokens");
  MovedMessage told;
  told.usage = UsageOf(CountIn(tokens, "prompt"), CountIn(tokens, "completion"), CountIn(tokens, "cached"), 0);
  const auto is_it = [&](const MovedMessage& request) {
    return !tokens.is_object() || (request.usage.input_tokens == told.usage.input_tokens &&
                                   request.usage.output_tokens == told.usage.output_tokens);
  };
  constexpr std::size_t kMostTries = 100;
  const std::size_t end = std::min(requests.size(), next + kMostTries);
  for (std::size_t i = next; i < end; ++i) {
    if (is_it(requests[i])) return next = i + 1, requests[i];
  }
  return told;
}

}  // namespace

ReadSession ReadCline(const Json& session, const std::string& path) {
  ReadSession read;
  const Json shown = path.empty() ? Json() : FileBeside(path, "ui_messages.json");
  const Json metadata = path.empty() ? Json() : FileBeside(path, "task_metadata.json");
  const auto requests = RequestsIn(shown);
  const Json& models = ListIn(metadata, "model_usage");
  if (!models.empty()) {
    read.messages.push_back({.kind = Kind::kModel, .model = TextMember(models.back(), "model_id")});
  }
  read.facts.id = std::filesystem::path(path).parent_path().filename().string();
  std::size_t answers = 0, next_request = 0;
  std::vector<OpenCall> open;
  for (const Json& message : session) {
    std::vector<MovedMessage> results;
    const bool is_answer = TextMember(message, "role") == "assistant";
    const Json& whole = MemberOf(message, "content");
    AnthropicContent content =
        ReadAnthropicContent(is_answer ? whole : WithoutResults(whole, open, results, read.left_out), read.left_out);
    std::ranges::move(results, std::back_inserter(content.results));
    open.clear();
    MovedMessage& said = content.message;
    auto at = TimeIn(MemberOf(message, "ts"));
    if (is_answer) {
      for (const MovedBlock& block : said.blocks) {
        if (block.kind == MovedBlock::Kind::kCall) open.push_back({.id = block.id, .name = block.name});
      }
      said.kind = Kind::kAnswer;
      said.text.clear();
      said.group = "answer " + std::to_string(answers++);
      said.model = TextMember(MemberOf(message, "modelInfo"), "modelId");
      const MovedMessage request = RequestOf(message, requests, next_request);
      said.usage = request.usage;
      at = at ? at : request.at;
    } else {
      said.blocks.clear();
    }
    said.at = at;
    for (MovedMessage& result : content.results) {
      result.at = at;
      read.messages.push_back(std::move(result));
    }
    if (said.kind == Kind::kAnswer || !said.text.empty() || !said.files.empty())
      read.messages.push_back(std::move(said));
    if (!read.facts.created) read.facts.created = at;
    read.facts.updated = std::max(read.facts.updated, at);
  }
  return read;
}

}  // namespace reprise
