// Codex: a line for each item of OpenAI's Responses API and for each event of the interface; early versions wrote the
// items alone.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "engine/moves/formats.h"

namespace reprise {
namespace {

using Kind = MovedMessage::Kind;

// Messages with the user's role that the tool writes by itself begin and end like this, perhaps several in one.
constexpr std::array<std::string_view, 10> kOwnBeginnings = {
    "<environment_context>", "<user_instructions>",    "# AGENTS.md instructions", "<INSTRUCTIONS>",
    "<permissions",          "<turn_aborted>",         "<collaboration_mode>",     "<skill>",
    "<user_shell_command>",  "<subagent_notification>"};
constexpr std::array<std::string_view, 9> kOwnEnds = {
    "</environment_context>",  "</user_instructions>",  "</INSTRUCTIONS>", "</permissions",
    "</turn_aborted>",         "</collaboration_mode>", "</skill>",        "</user_shell_command>",
    "</subagent_notification>"};
// Events that repeat items, or hold nothing of the conversation.
constexpr std::array kRepeating = {
    "user_message",        "agent_message",     "agent_reasoning",   "agent_reasoning_raw_content",
    "task_started",        "task_complete",     "turn_started",      "turn_complete",
    "exec_command_begin",  "exec_command_end",  "context_compacted", "agent_reasoning_section_break",
    "item_completed",      "item_started",      "patch_apply_begin", "patch_apply_end",
    "mcp_tool_call_begin", "mcp_tool_call_end", "web_search_begin",  "web_search_end",
    "thread_name_updated", "turn_diff",         "plan_update",       "view_image_tool_call"};
constexpr std::array kSilentItems = {"ghost_snapshot", "other"};

bool IsOwnText(std::string_view text) {
  text = Trimmed(text);
  const std::string_view last = text.substr(std::min(text.rfind("</"), text.size()));
  return std::ranges::any_of(kOwnBeginnings, [&](std::string_view own) { return text.starts_with(own); }) &&
         text.ends_with('>') &&
         std::ranges::any_of(kOwnEnds, [&](std::string_view own) { return last.starts_with(own); });
}

class CodexReader final : public RecordReader {
 public:
  std::vector<MovedMessage> Take(const Json& line) override {
    is_first_ = record >= read_;
    read_ = std::max(read_, record + 1);
    const auto at = TimeIn(MemberOf(line, "timestamp"));
    if (!facts.created) facts.created = at;
    facts.updated = std::max(facts.updated, at);
    const std::string type = TextMember(line, "type");
    const Json& payload = MemberOf(line, "payload");
    std::vector<MovedMessage> messages;
    if (type == "session_meta") {
      TakeMeta(payload);
    } else if (type == "turn_context") {
      const std::string folder = TextMember(payload, "cwd");
      if (facts.folder.empty()) facts.folder = folder;
      if (!folder.empty() && folder != facts.folder) AddNamed(left_out, "turn in another folder", {folder});
      if (!TextMember(payload, "effort").empty()) left_out.Add("effort of a turn");
      messages.push_back({.kind = Kind::kModel, .model = TextMember(payload, "model")});
    } else if (type == "event_msg") {
      messages = TakeEvent(payload);
    } else if (type == "compacted") {
      messages = TakeCompaction(payload);
    } else if (type == "response_item") {
      messages = TakeItem(payload);
    } else if (line.contains("type")) {
      messages = TakeItem(line);  // as the first versions wrote them
    } else if (line.contains("id")) {
      TakeMeta(line);
    } else if (!line.contains("record_type")) {
      left_out.AddUnknown("line", type);
    }
    for (MovedMessage& message : messages) message.at = at;
    return messages;
  }

 private:
  void TakeMeta(const Json& meta) {
    const Json& spawned = MemberOf(MemberOf(MemberOf(meta, "source"), "subagent"), "thread_spawn");
    const std::string parent = TextMember(spawned, "parent_thread_id");
    if (!parent.empty() && facts.id.empty()) AddNamed(left_out, "session whose sub-agent this is", {parent});
    if (facts.id.empty()) facts.id = TextMember(meta, "id");
    if (facts.folder.empty()) facts.folder = TextMember(meta, "cwd");
    if (!facts.created) facts.created = TimeIn(MemberOf(meta, "timestamp"));
  }

  // The summary, or else what the model was told from here on. What only its provider can read replaces nothing.
  std::vector<MovedMessage> TakeCompaction(const Json& compaction) {
    MovedMessage summary{.kind = Kind::kSummary, .text = TextMember(compaction, "message")};
    if (!IsBlank(summary.text)) return {std::move(summary)};
    summary.text.clear();
    for (const Json& item : ListIn(compaction, "replacement_history")) {
      if (TextMember(item, "type").starts_with("compaction")) return TakeItem(item);
      MovedMessage kept;
      PutParts(ListIn(item, "content"), kept);
      if (!IsOwnText(kept.text)) AddLine(summary.text, kept.text);
    }
    if (!IsBlank(summary.text)) return {std::move(summary)};
    left_out.Add("summary without a text");
    return {};
  }

  std::vector<MovedMessage> TakeEvent(const Json& event) {
    const std::string type = TextMember(event, "type");
    if (type == "turn_aborted") return {{.kind = Kind::kStopped}};
    if (type == "token_count") {
      const Json& usage = MemberOf(MemberOf(event, "info"), "last_token_usage");
      // It is told again with limits and at the beginning of a turn; only a new sum is of a new request.
      const Json& sum = MemberOf(MemberOf(event, "info"), "total_token_usage");
      const bool is_new = sum.is_null() || record_of_sum_.try_emplace(DumpJson(sum), record).first->second == record;
      if (usage.is_null() || !is_new) return {};
      return {{.kind = Kind::kUsage,
               .usage = {.input_tokens = CountIn(usage, "input_tokens"),
                         .output_tokens = CountIn(usage, "output_tokens"),
                         .cache_read_tokens = CountIn(usage, "cached_input_tokens")}}};
    }
    if (type == "error" && IsOfTurn()) return {{.kind = Kind::kFailed, .text = TextMember(event, "message")}};
    if (is_first_ && (type == "task_complete" || type == "turn_complete")) in_turn_ = false;
    if (type == "error" || type == "stream_error" || type == "warning") {
      left_out.Add("message about a failure");
    } else if (type == "thread_rolled_back") {
      if (is_first_) RollBack(static_cast<std::size_t>(CountIn(event, "num_turns")));
    } else if (std::ranges::find(kRepeating, type) == kRepeating.end()) {
      left_out.AddUnknown("event", type);
    }
    return {};
  }

  std::vector<MovedMessage> TakeItem(const Json& item) {
    const std::string type = TextMember(item, "type");
    if (type == "message" || (type.empty() && item.contains("role"))) return TakeMessage(item);
    MovedMessage message{.kind = Kind::kAnswer};
    if (type == "reasoning") {
      std::string text;
      for (const char* list : {"summary", "content"}) {
        for (const Json& part : ListIn(item, list)) {
          if (text.empty() || list == std::string_view("summary"))
            text += (text.empty() ? "" : "\n\n") + TextMember(part, "text");
        }
      }
      if (!TextMember(item, "encrypted_content").empty()) left_out.Add("reasoning that only its provider can read");
      if (text.empty()) return {};
      message.blocks.push_back({.kind = MovedBlock::Kind::kThinking, .text = std::move(text)});
    } else if (type == "function_call" || type == "custom_tool_call" || type == "local_shell_call" ||
               type == "tool_search_call") {
      message.blocks.push_back(CallIn(item, type));
    } else if (type == "web_search_call") {
      left_out.Add("web search of the provider");
      return {};
    } else if (type.ends_with("_output")) {
      message.kind = Kind::kResult;
      message.call_id = TextMember(item, "call_id");
      PutOutput(MemberOf(item, "output"), message);
      if (const Json& tools = MemberOf(item, "tools"); !tools.is_null()) AddLine(message.text, DumpJson(tools));
    } else if (type.starts_with("compaction")) {
      left_out.Add("summary that only its provider can read, so all messages stay");
      return {};
    } else {
      const bool silent = std::ranges::find(kSilentItems, type) != kSilentItems.end();
      if (!silent) left_out.AddUnknown("item", type);
      return {};
    }
    return {std::move(message)};
  }

  static MovedBlock CallIn(const Json& item, const std::string& type) {
    MovedBlock call{
        .kind = MovedBlock::Kind::kCall, .id = TextMember(item, "call_id"), .name = TextMember(item, "name")};
    if (call.id.empty()) call.id = TextMember(item, "id");
    if (type == "custom_tool_call") {
      call.text = DumpJson({{"input", TextMember(item, "input")}});
    } else {
      call.text = ArgumentsIn(MemberOf(item, type == "local_shell_call" ? "action" : "arguments"));
    }
    if (call.name.empty()) call.name = type == "local_shell_call" ? "local_shell" : "tool_search";
    return call;
  }

  // Whether a person's message is being answered. As it was found when the lines were read in order.
  bool IsOfTurn() {
    if (is_first_ && in_turn_) failures_.insert(record);
    return failures_.contains(record);
  }

  // A text, which may be JSON with the text in it; an object; or a list of parts.
  void PutOutput(const Json& output, MovedMessage& message) {
    if (output.is_array()) return PutParts(output, message);
    if (output.contains("text")) return PutParts(Json::array({output}), message);
    const Json& content = MemberOf(output, "content");
    if (content.is_array()) PutParts(content, message);
    if (content.is_string()) message.text = content.get<std::string>();
    message.is_error = MemberOf(output, "success") == false;
    if (output.is_object() && content.is_null()) message.text = DumpJson(output);
    if (output.is_string()) message.text = output.get<std::string>();
    if (!message.text.starts_with("{\"output\":")) return;
    const auto inner = ParseForeignJson(message.text, {});
    if (!inner || !MemberOf(*inner, "output").is_string()) return;
    message.is_error = CountIn(MemberOf(*inner, "metadata"), "exit_code") != 0;
    message.text = TextMember(*inner, "output");
  }

  void PutParts(const Json& parts, MovedMessage& message) {
    for (const Json& part : parts) {
      if (part.contains("text")) {
        AddLine(message.text, TextMember(part, "text"));
      } else if (auto file = FileInDataUrl(TextMember(part, "image_url"))) {
        message.files.push_back(*std::move(file));
      } else {
        left_out.Add("part of a message (" + FirstWords(TextMember(part, "type")) + ")");
      }
    }
  }

  std::vector<MovedMessage> TakeMessage(const Json& item) {
    MovedMessage message;
    PutParts(ListIn(item, "content"), message);
    const std::string role = TextMember(item, "role");
    if (role == "assistant") {
      message.kind = Kind::kAnswer;
      message.blocks.push_back({.text = std::exchange(message.text, {})});
    } else if (role != "user" || IsOwnText(message.text)) {
      left_out.Add("message that the tool added by itself");
      return {};
    } else {
      PutPlace(message);
    }
    return {std::move(message)};
  }

  // The next message of the person continues the one before those that were taken back.
  void RollBack(std::size_t prompts) {
    prompts_.resize(prompts_.size() - std::min(prompts, prompts_.size()));
    facts.head = prompts_.empty() ? std::string() : prompts_.back();
    rolled_back_ = true;
  }

  // As it was found when the lines were read in order.
  void PutPlace(MovedMessage& prompt) {
    prompt.id = std::to_string(record);
    if (is_first_) {
      in_turn_ = true;
      if (prompts_.empty() && rolled_back_) roots_.insert(record);
      if (!prompts_.empty()) parents_.emplace(record, prompts_.back());
      prompts_.push_back(prompt.id);
      facts.head.clear();
    }
    prompt.is_root = roots_.contains(record);
    if (const auto parent = parents_.find(record); parent != parents_.end()) prompt.parent = parent->second;
  }

  std::size_t read_ = 0;  // records
  bool is_first_ = true;  // reading of the record
  bool rolled_back_ = false;
  std::vector<std::string> prompts_;                      // that were not taken back so far
  std::unordered_map<std::size_t, std::string> parents_;  // of prompts, by record
  std::unordered_set<std::size_t> roots_;                 // prompts that nothing is left before
  bool in_turn_ = false;                                  // at this line, when they are first read
  std::unordered_set<std::size_t> failures_;              // records of errors that ended a turn

  std::unordered_map<std::string, std::size_t> record_of_sum_;  // of tokens: the first line that has it
};

}  // namespace

std::unique_ptr<RecordReader> ReadCodex(const std::string&) { return std::make_unique<CodexReader>(); }

}  // namespace reprise
