// Cline: a task's folder, with the messages of Anthropic's API and what its interface showed.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
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

// What a person says in such a message.
std::string SaidIn(const std::string& text) {
  constexpr std::string_view kBegin = "<user_message>";
  const std::size_t begin = text.find(kBegin), end = text.find("</user_message>", begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return std::string(Trimmed(text.substr(begin + kBegin.size(), end - begin - kBegin.size())));
}

// The tool says at the end of an answer how that was cut off. Removes it; nullopt: it was not.
std::optional<MovedMessage> TakeEnd(std::vector<MovedBlock>& blocks) {
  constexpr std::pair<std::string_view, Kind> kMarks[] = {{"[Response interrupted by user]", Kind::kStopped},
                                                          {"[Response interrupted by API Error]", Kind::kFailed},
                                                          {"Failure: I did not provide a response.", Kind::kFailed}};
  if (blocks.empty() || blocks.back().kind != MovedBlock::Kind::kText) return std::nullopt;
  const std::string_view text = Trimmed(blocks.back().text);
  for (const auto& [mark, kind] : kMarks) {
    if (!text.ends_with(mark)) continue;
    MovedMessage end{.kind = kind, .text = std::string(mark)};
    std::string before(Trimmed(text.substr(0, text.size() - mark.size())));
    before.empty() ? blocks.pop_back() : void(blocks.back().text = std::move(before));
    return end;
  }
  return std::nullopt;
}

// Its results say only by their words that a call failed, was denied or did not run.
bool SaysFailure(std::string_view result) {
  return result.starts_with("The tool execution failed with the following error:") ||
         result.starts_with("The user denied this operation") ||
         (result.starts_with("Tool [") && result.find("] was not executed") != std::string_view::npos);
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
  const bool is_skipped = text.starts_with("Tool [" + name + "] was not executed");
  if (!is_skipped && (!names_it || end == std::string::npos)) return std::nullopt;
  if (!is_skipped) result.text = std::string(Trimmed(text.substr(end + kResult.size())));
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
      if (std::string said = SaidIn(text); !said.empty()) kept.push_back({{"type", "text"}, {"text", std::move(said)}});
    } else if (text.empty()) {
      kept.push_back(block);
    } else if (std::string said = WithoutDetails(text); !said.empty()) {
      kept.push_back({{"type", "text"}, {"text", std::move(said)}});
    }
  }
  return kept;
}

std::string Beside(const std::string& path, const char* name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

// A request to a model.
struct Request {
  std::optional<Timestamp> at{};
  TokenUsage usage{};
};

// The tokens of each request, as the interface was told of them in the file.
std::vector<Request> RequestsIn(const std::string& file) {
  std::vector<Request> requests;
  const auto source = SourceText::Open(file);
  if (!source) return requests;
  // Without the rest of a file that cannot be read.
  (void)ForEachElement(*source, [&](const ElementPlace& at) -> Result<bool> {
    if (at.length > kMaxSourceRecord) return true;
    const std::string text = TRY(source->Read(at.offset, static_cast<std::size_t>(at.length)));
    const Json each = TRY(ParseForeignJson(text, file));
    if (TextMember(each, "say") != "api_req_started") return true;
    const auto told = ParseForeignJson(TextMember(each, "text"), {});
    if (!told) return true;
    requests.push_back({.at = TimeIn(MemberOf(each, "ts")),
                        .usage = UsageOf(CountIn(*told, "tokensIn"), CountIn(*told, "tokensOut"),
                                         CountIn(*told, "cacheReads"), CountIn(*told, "cacheWrites"))});
    return true;
  });
  return requests;
}

// The request that an answer is from: of the next ones, some of which may have failed, the first that had as many
// tokens as the message says; just the next if it says nothing. Without one there is what the message says, which tells
// the cache's tokens as one number.
Request RequestOf(const Json& message, const std::vector<Request>& requests, std::size_t& next) {
  const Json& tokens = MemberOf(MemberOf(message, "metrics"), "tokens");
  Request told;
  told.usage = UsageOf(CountIn(tokens, "prompt"), CountIn(tokens, "completion"), CountIn(tokens, "cached"), 0);
  const auto is_it = [&](const Request& request) {
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

// Its records are messages.
class ClineReader final : public RecordReader {
 public:
  explicit ClineReader(const std::string& path) {
    if (path.empty()) return;
    facts.id = std::filesystem::path(path).parent_path().filename().string();
    requests_ = RequestsIn(Beside(path, "ui_messages.json"));
    const auto metadata = ReadForeignJson(Beside(path, "task_metadata.json")).value_or(Json());
    const Json& models = ListIn(metadata, "model_usage");
    if (!models.empty()) model_ = TextMember(models.back(), "model_id");
  }

  std::vector<MovedMessage> Take(const Json& message) override {
    const bool is_first = record >= read_;  // reading
    read_ = std::max(read_, record + 1);
    const bool is_answer = TextMember(message, "role") == "assistant";
    std::vector<MovedMessage> messages;
    if (record == 0 && !model_.empty()) messages.push_back({.kind = Kind::kModel, .model = model_});
    if (is_first && !is_answer && !open_.empty()) open_before_.emplace(record, open_);
    if (is_first) open_.clear();
    std::vector<MovedMessage> results;
    auto open = is_answer ? open_before_.end() : open_before_.find(record);
    std::vector<OpenCall> calls = open == open_before_.end() ? std::vector<OpenCall>() : open->second;
    const Json& whole = MemberOf(message, "content");
    AnthropicContent content =
        ReadAnthropicContent(is_answer ? whole : WithoutResults(whole, calls, results, left_out), left_out);
    std::ranges::move(results, std::back_inserter(content.results));
    MovedMessage& said = content.message;
    auto at = TimeIn(MemberOf(message, "ts"));
    std::optional<MovedMessage> end;
    if (is_answer) {
      end = TakeEnd(said.blocks);
      for (const MovedBlock& block : said.blocks) {
        if (is_first && block.kind == MovedBlock::Kind::kCall) open_.push_back({.id = block.id, .name = block.name});
      }
      said.kind = Kind::kAnswer;
      said.text.clear();
      said.group = "answer " + std::to_string(record);
      said.model = TextMember(MemberOf(message, "modelInfo"), "modelId");
      if (is_first) requests_of_.emplace(record, RequestOf(message, requests_, next_request_));
      const Request& request = requests_of_.at(record);
      said.usage = request.usage;
      at = at ? at : request.at;
    } else {
      said.blocks.clear();
    }
    said.at = at;
    for (MovedMessage& result : content.results) {
      result.at = at;
      result.is_error = result.is_error || SaysFailure(result.text);
      messages.push_back(std::move(result));
    }
    const bool is_empty = is_answer ? end && said.blocks.empty() : said.text.empty() && said.files.empty();
    if (!is_empty) messages.push_back(std::move(said));
    if (end) messages.push_back(*std::move(end));
    if (end) messages.back().at = at;
    if (!facts.created) facts.created = at;
    facts.updated = std::max(facts.updated, at);
    return messages;
  }

 private:
  std::string model_;  // the last one that the task used
  std::vector<Request> requests_;
  // What was known of a record when all were read in order.
  std::unordered_map<std::size_t, std::vector<OpenCall>> open_before_;  // calls without results
  std::unordered_map<std::size_t, Request> requests_of_;                // of answers
  std::size_t read_ = 0;                                                // records
  std::vector<OpenCall> open_;
  std::size_t next_request_ = 0;
};

}  // namespace

bool IsClineMessage(const Json& json) {
  const Json& content = MemberOf(json, "content");
  const std::string role = TextMember(json, "role");
  // Others, such as OpenAI's, have further roles, or calls beside the content.
  return (role == "user" || role == "assistant") && (content.is_array() || content.is_string()) &&
         !json.contains("created") && !json.contains("tool_calls");
}

OpenedDocument OpenCline(MovedDocument document, const std::string& path) {
  Records records = ElementsOf(document, "[");
  auto load = [source = document.source, load = std::move(records.load)](std::size_t record) -> Result<Json> {
    Json message = TRY(load(record));
    if (!IsClineMessage(message)) return NoSessionOf("Cline", source);
    return message;
  };
  return OpenRecords({.count = records.count, .load = std::move(load)}, std::make_unique<ClineReader>(path));
}

}  // namespace reprise
