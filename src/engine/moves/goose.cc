// Goose: a line about the session, then one for each message; `goose session export --format json` is one object, and
// so is what sessions.db has (databases.h).
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// A result as the model got it: without what the tool tells the user alone, often the same once more.
Json ToldTheModel(const Json& content, LeftOut& left_out) {
  Json told = Json::array();
  for (const Json& part : content.is_array() ? content : Json::array()) {
    const Json& audience = ListIn(MemberOf(part, "annotations"), "audience");
    if (audience.empty() || std::ranges::find(audience, "assistant") != audience.end()) told.push_back(part);
  }
  if (told.empty()) return content;
  left_out.Add("part of a result for the user alone", content.size() - told.size());
  return told;
}

class GooseReader final : public RecordReader {
 public:
  std::vector<MovedMessage> Take(const Json& line) override {
    if (!line.contains("role")) {
      TakeFacts(line);
      return {};
    }
    MovedMessage said;
    std::vector<MovedMessage> messages;
    const auto at = TimeIn(MemberOf(line, "created"));
    if (!MemberOf(line, "content").is_array()) left_out.Add("message that cannot be read");
    for (const Json& part : ListIn(line, "content")) {
      TakePart(part, said, messages);
    }
    if (IsHidden(line, said)) {
      messages.clear();
      if (said.kind == Kind::kSummary) messages.push_back(std::move(said));
    } else if (TextMember(line, "role") == "assistant") {
      said.kind = IsFailure(said) ? Kind::kFailed : Kind::kAnswer;
      if (said.kind == Kind::kAnswer) said.text.clear();
      messages.push_back(std::move(said));
    } else if (!said.text.empty() || !said.files.empty()) {
      said.blocks.clear();
      messages.push_back(std::move(said));
    }
    first_sent_ = std::min(first_sent_, IsMember(line, "agentVisible") ? record : first_sent_);
    for (MovedMessage& message : messages) message.at = at;
    facts.updated = std::max(facts.updated, at);
    if (!facts.created) facts.created = at;
    return messages;
  }

  void TakeFacts(const Json& about) {
    facts.folder = TextMember(about, "working_dir");
    facts.id = TextMember(about, "id");
    facts.title = TextMember(about, about.contains("name") ? "name" : "description");
    if (CountIn(about, "accumulated_total_tokens") > 0) left_out.Add("sum of tokens, which no message states");
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // Messages say who sees them; both do unless it is denied.
  static bool IsMember(const Json& line, std::string_view name) {
    return MemberOf(MemberOf(line, "metadata"), name) != false;
  }

  // What the tool says itself if a request fails.
  static bool IsFailure(const MovedMessage& said) {
    constexpr std::pair<std::string_view, std::string_view> kFailures[] = {
        {"Ran into this error: ", "Please retry if you think this is a transient or recoverable error."},
        {"Ran into this error trying to compact: ", "Please try again or create a new session"},
        {"Ran into this error trying to compact: ",
         "Please retry if you think this is a transient or recoverable error."},
        {"Error: Unable to truncate messages to stay within context limit.", " with fresh context and try again."},
        {"Network error: ", "\n\nPlease resend your message to try again."},
        {"The provider refused this request.", " is likely to be refused again."},
        {"The model returned an empty response.", " Please resend your message to continue."}};
    return said.blocks.size() == 1 && std::ranges::any_of(kFailures, [&said](const auto& failure) {
             return said.text.starts_with(failure.first) && said.text.ends_with(failure.second);
           });
  }

  // What the tool tells the model without showing it: the summary in place of all before it, which is sent no more, and
  // remarks.
  bool IsHidden(const Json& line, MovedMessage& said) {
    if (IsMember(line, "userVisible")) return false;
    const bool is_summary = TextMember(line, "role") == "user" && IsMember(line, "agentVisible") && record > 0 &&
                            first_sent_ >= record && !IsBlank(said.text);
    if (is_summary) {
      said = {.kind = Kind::kSummary, .text = std::move(said.text)};
    } else {
      left_out.Add("message that the tool added by itself");
    }
    return true;
  }

  void TakePart(const Json& part, MovedMessage& said, std::vector<MovedMessage>& messages) {
    const std::string type = TextMember(part, "type");
    if (type == "text") {
      AddLine(said.text, TextMember(part, "text"));
      said.blocks.push_back({.text = TextMember(part, "text")});
    } else if (type == "thinking") {
      const Json block = {{"type", "thinking"},
                          {"thinking", TextMember(part, "thinking")},
                          {"signature", TextMember(part, "signature")}};
      said.blocks.push_back({.kind = MovedBlock::Kind::kThinking,
                             .text = TextMember(part, "thinking"),
                             .verbatim = TextMember(part, "signature").empty() ? "" : DumpJson(block)});
    } else if (type == "toolRequest" || type == "frontendToolRequest") {
      const Json& call = MemberOf(MemberOf(part, "toolCall"), "value");
      if (call.is_null()) left_out.Add("name of a call that could not be read");
      said.blocks.push_back({.kind = MovedBlock::Kind::kCall,
                             .text = ArgumentsIn(MemberOf(call, "arguments")),
                             .id = TextMember(part, "id"),
                             .name = TextMember(call, "name")});
    } else if (type == "toolResponse") {
      const Json& outcome = MemberOf(part, "toolResult");
      const Json& value = MemberOf(outcome, "value");
      MovedMessage result{.kind = Kind::kResult, .call_id = TextMember(part, "id")};
      result.is_error = TextMember(outcome, "status") == "error" || MemberOf(value, "isError") == true;
      const bool is_object = value.is_object();
      result.text = result.is_error && value.is_null()
                        ? TextMember(outcome, "error")
                        : ResultText(ToldTheModel(is_object ? MemberOf(value, "content") : value, left_out),
                                     result.files, left_out);
      result.is_error = result.is_error || result.text.starts_with("The user has declined to run this tool.");
      // As MCP has it, its text says the same.
      const Json& structured = MemberOf(value, "structuredContent");
      if (result.text.empty() && !structured.is_null()) {
        result.text = DumpJson(structured);
      } else if (!structured.is_null()) {
        left_out.Add("structured content of a result");
      }
      messages.push_back(std::move(result));
    } else if (type == "image") {
      AddBase64(TextMember(part, "data"), TextMember(part, "mimeType"), said.files, left_out);
    } else {
      left_out.Add("part of a message (" + FirstWords(type) + ")");
    }
  }

  std::size_t first_sent_ = kNone;  // the first message that the model still gets
};

// What an export says besides its messages.
class GooseExportReader final : public RecordReader {
 public:
  explicit GooseExportReader(const Json& session) {
    reader_.TakeFacts(session);
    facts = reader_.facts;
    std::vector<std::string> sub_agents;
    for (const Json& id : ListIn(session, "sub_agents"))
      sub_agents.push_back(id.is_string() ? id.get<std::string>() : "");
    AddNamed(left_out, "sub-agent in a session of its own", sub_agents);
    left_out.Add(std::exchange(reader_.left_out, {}));
    model_ = TextMember(MemberOf(session, "model_config"), "model_name");
  }

  std::vector<MovedMessage> Take(const Json& message) override {
    reader_.record = record;
    auto messages = reader_.Take(message);
    if (record == 0 && !model_.empty()) messages.insert(messages.begin(), {.kind = Kind::kModel, .model = model_});
    facts = reader_.facts;
    left_out.Add(std::exchange(reader_.left_out, {}));
    return messages;
  }

 private:
  GooseReader reader_;
  std::string model_;
};

}  // namespace

std::unique_ptr<RecordReader> ReadGoose(const std::string&) { return std::make_unique<GooseReader>(); }

std::unique_ptr<RecordReader> ReadGooseExport(const Json& session) {
  return std::make_unique<GooseExportReader>(session);
}

OpenedDocument OpenGooseExport(MovedDocument document, const std::string&) {
  return OpenRecords(ElementsOf(document, "conversation["), ReadGooseExport(document.rest));
}

}  // namespace reprise
