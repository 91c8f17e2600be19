#include "acp/updates.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "acp/terminal_tool.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/utf8.h"
#include "terminal/question_text.h"

namespace reprise::acp {
namespace {

constexpr const char* kText = "agent_message_chunk";
constexpr const char* kThought = "agent_thought_chunk";
constexpr std::chrono::milliseconds kBetweenOutputs{100};
constexpr std::size_t kMaxOutput = 16'384;  // of a tool that still runs: each update repeats it

Json TextBlock(const std::string& text) { return {{"type", "text"}, {"text", text}}; }
Json TextContent(const std::string& text) { return {{"type", "content"}, {"content", TextBlock(text)}}; }

const char* KindOf(std::string_view tool) {
  struct Known {
    std::string_view tool;
    const char* kind;
  };
  static constexpr Known kKinds[] = {
      {"read_file", "read"},       {"list_files", "read"},     {"read_chat_file", "read"},
      {"list_chat_files", "read"}, {"write_file", "edit"},     {"edit_file", "edit"},
      {"save_chat_file", "edit"},  {"delete_file", "delete"},  {"delete_chat_file", "delete"},
      {"move_file", "move"},       {"search_files", "search"}, {"run_shell", "execute"},
      {"run_code", "execute"},     {"http_get", "fetch"},      {"manage_tasks", "think"},
      {"update_plan", "think"},    {"research", "think"},      {TerminalTool::kName, "execute"},
  };
  for (const Known& known : kKinds) {
    if (known.tool == tool) return known.kind;
  }
  return "other";
}

bool RunsCommands(std::string_view tool) { return tool == "run_shell" || tool == "run_code"; }

bool NamesWorkspaceFile(std::string_view tool) {
  for (const std::string_view each :
       {"read_file", "list_files", "write_file", "edit_file", "delete_file", "move_file"}) {
    if (each == tool) return true;
  }
  return false;
}

// As a block of code, whatever stands in it.
std::string Fenced(const std::string& text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fence + "\n" + text + (text.ends_with('\n') ? "" : "\n") + fence;
}

// The end of a text that has become long, from the beginning of a character on.
void KeepEnd(std::string& text) {
  if (text.size() <= 2 * kMaxOutput) return;
  std::size_t from = text.size() - kMaxOutput;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  text.erase(0, from);
}

Json JsonOf(const std::string& tool_input) {
  auto arguments = ParseJson(tool_input);
  return arguments ? *std::move(arguments) : Json(tool_input);
}

// For the editor, which may read numbers as doubles: those that would be rounded come as the text that they are in.
Json RawInput(const std::string& tool_input) {
  Json arguments = JsonOf(tool_input);
  return !arguments.is_string() && HasLongNumber(tool_input) ? Json(tool_input) : arguments;
}

}  // namespace

void Updates::Begin(const std::string& interaction) {
  if (interaction == interaction_) return;
  interaction_ = interaction;
  calls_.clear();
  terminal_call_.clear();
  thought_.clear();
  text_.clear();
  held_.clear();
  message_ = 0;
}

Json Updates::UserMessage(const std::string& interaction, const std::string& text) {
  return {{"sessionUpdate", "user_message_chunk"}, {"messageId", interaction + "/user"}, {"content", TextBlock(text)}};
}

Json Updates::Chunk(const char* kind, const std::string& text) {
  const char* const which = kind == kThought ? "/thought/" : "/message/";
  return {{"sessionUpdate", kind},
          {"messageId", interaction_ + which + std::to_string(message_)},
          {"content", TextBlock(text)}};
}

void Updates::FlushText(std::vector<Json>& updates) {
  if (!held_.empty()) updates.push_back(Chunk(held_kind_, std::exchange(held_, {})));
}

// `whole` repeats what came in pieces; only what has not been shown is new.
void Updates::TakeText(std::vector<Json>& updates, const char* kind, std::string& shown, const std::string& whole) {
  FlushText(updates);
  if (whole.size() > shown.size() && whole.starts_with(shown))
    updates.push_back(Chunk(kind, whole.substr(shown.size())));
  shown.clear();
}

std::string Updates::FullPath(const std::string& path) const {
  if (path.starts_with('/') || workspace_.empty()) return path;
  return workspace_ == "/" ? "/" + path : workspace_ + "/" + path;
}

Json Updates::Locations(const Call& call) const {
  Json locations = Json::array();
  if (workspace_.empty() || !NamesWorkspaceFile(call.tool_name)) return locations;
  const Json arguments = JsonOf(call.tool_input);
  const std::string path = TextMember(arguments, "path");
  if (!path.empty()) locations.push_back({{"path", FullPath(path)}});
  return locations;
}

Updates::Call& Updates::CallOf(const Json& data) {
  const std::string in_call = TextMember(data, "call_id");
  Call& call = calls_[in_call.empty() ? TextMember(data, "id") : in_call];
  if (const std::string tool = TextMember(data, "tool_name"); !tool.empty()) call.tool_name = tool;
  if (const std::string input = TextMember(data, "tool_input"); !input.empty() && input != call.tool_input) {
    call.tool_input = input;
    // Of a call that nobody was asked about, and of one whose arguments were changed.
    call.diff = nullptr;
    const Json arguments = JsonOf(input);
    const std::string path = FullPath(TextMember(arguments, "path"));
    if (call.tool_name == "write_file" && MemberOf(arguments, "content").is_string()) {
      call.diff = {{"type", "diff"}, {"path", path}, {"newText", TextMember(arguments, "content")}};
    } else if (call.tool_name == "edit_file" && MemberOf(arguments, "new_text").is_string()) {
      call.diff = {{"type", "diff"},
                   {"path", path},
                   {"oldText", TextMember(arguments, "old_text")},
                   {"newText", TextMember(arguments, "new_text")}};
    }
  }
  return call;
}

void Updates::SetDiff(const std::string& call_id, const std::string& path, std::optional<std::string> before,
                      const std::string& after) {
  calls_[call_id].diff = {{"type", "diff"},
                          {"path", FullPath(path)},
                          {"oldText", before ? Json(*before) : Json(nullptr)},
                          {"newText", after}};
}

std::vector<Json> Updates::SetTerminal(const std::string& terminal) {
  const auto call = calls_.find(terminal_call_);
  if (call == calls_.end() || !call->second.terminal.empty()) {
    terminal_ = terminal;
    return {};
  }
  call->second.terminal = terminal;
  return {Announce(call->first, call->second, "in_progress")};
}

Json Updates::Content(const Call& call) const {
  Json content = Json::array();
  if (!call.diff.is_null()) content.push_back(call.diff);
  if (!call.terminal.empty()) content.push_back({{"type", "terminal"}, {"terminalId", call.terminal}});
  if (!call.nested.empty()) content.push_back(TextContent(call.nested));
  if (!call.output.empty()) {
    content.push_back(TextContent(RunsCommands(call.tool_name) ? Fenced(call.output) : call.output));
  }
  return content;
}

Json Updates::Announce(const std::string& id, Call& call, const char* status) {
  Json update = {{"sessionUpdate", call.is_announced ? "tool_call_update" : "tool_call"},
                 {"toolCallId", CallId(id)},
                 {"title", CallLabel(call.tool_name, call.tool_input)},
                 {"name", call.tool_name},
                 {"kind", KindOf(call.tool_name)},
                 {"status", status},
                 {"rawInput", RawInput(call.tool_input)}};
  if (Json locations = Locations(call); !locations.empty()) update["locations"] = std::move(locations);
  if (Json content = Content(call); !content.empty() || call.is_announced) update["content"] = std::move(content);
  call.is_announced = true;
  return update;
}

Json Updates::DescribeCall(const std::string& call_id) const {
  const auto found = calls_.find(call_id);
  Json update = {{"toolCallId", CallId(call_id)}};
  if (found == calls_.end()) return update;
  const Call& call = found->second;
  update["title"] = CallLabel(call.tool_name, call.tool_input);
  update["name"] = call.tool_name;
  update["kind"] = KindOf(call.tool_name);
  update["status"] = "pending";
  update["rawInput"] = RawInput(call.tool_input);
  if (Json locations = Locations(call); !locations.empty()) update["locations"] = std::move(locations);
  Json content = Content(call);
  for (const Json& each : call.asked) content.push_back(each);
  if (!content.empty()) update["content"] = std::move(content);
  return update;
}

Json Updates::Plan() const {
  Json entries = Json::array();
  for (const std::string& step : steps_) {
    entries.push_back({{"content", step}, {"priority", "medium"}, {"status", "pending"}});
  }
  for (const Json& task : tasks_) {
    const std::string status = TextMember(task, "status");
    entries.push_back({{"content", TextMember(task, "title")},
                       {"priority", "medium"},
                       {"status", status == "done"    ? "completed"
                                  : status == "doing" ? "in_progress"
                                                      : "pending"}});
  }
  return {{"sessionUpdate", "plan"}, {"entries", std::move(entries)}};
}

bool Updates::HoldsOutput() const {
  return std::any_of(calls_.begin(), calls_.end(), [](const auto& each) { return each.second.is_dirty; });
}

std::vector<Json> Updates::Flush(bool all) {
  std::vector<Json> updates;
  FlushText(updates);
  const auto now = std::chrono::steady_clock::now();
  if (!HoldsOutput() || (!all && now - flushed_ < kBetweenOutputs)) return updates;
  flushed_ = now;
  for (auto& [id, call] : calls_) {
    if (!std::exchange(call.is_dirty, false)) continue;
    updates.push_back({{"sessionUpdate", "tool_call_update"}, {"toolCallId", CallId(id)}, {"content", Content(call)}});
  }
  return updates;
}

std::vector<Json> Updates::Take(const std::string& name, const Json& data) {
  std::vector<Json> updates;
  if (name == "text_delta" || name == "thinking_delta") {
    const char* const kind = name == "text_delta" ? kText : kThought;
    if (held_kind_ != kind) FlushText(updates);
    held_kind_ = kind;
    const std::string piece = TextMember(data, "content");
    held_ += piece;
    (kind == kText ? text_ : thought_) += piece;
    return updates;
  }
  if (name == "thinking") {
    TakeText(updates, kThought, thought_, TextMember(data, "content"));
    return updates;
  }
  if (name == "message" || name == "answer") {
    TakeText(updates, kText, text_, TextMember(data, "content"));
    ++message_;
    return updates;
  }
  FlushText(updates);
  if (name == "tool_call") {
    Call& call = CallOf(data);
    call.asked.clear();
    if (call.tool_name == TerminalTool::kName) {
      terminal_call_ = TextMember(data, "id");
      call.terminal = std::exchange(terminal_, {});
    }
    updates.push_back(Announce(TextMember(data, "id"), call, "in_progress"));
  } else if (name == "approval_required") {
    Call& call = CallOf(data);
    call.asked.clear();
    if (const std::string reason = TextMember(data, "reason"); !reason.empty()) {
      call.asked.push_back(TextContent(VisibleLine(reason)));
    }
    if (const std::string escaped = TextMember(data, "tool_input_escaped"); !escaped.empty()) {
      call.asked.push_back(TextContent("Characters that cannot be seen, spelled out:\n" + Fenced(escaped)));
    }
    updates.push_back(Announce(TextMember(data, "call_id"), call, "pending"));
  } else if (name == "approved") {
    if (const std::string input = TextMember(data, "tool_input"); !input.empty()) {
      updates.push_back(Announce(TextMember(data, "call_id"), CallOf(data), "pending"));
    }
  } else if (name == "tool_output_delta") {
    Call& call = CallOf(data);
    call.output += TextMember(data, "content");
    KeepEnd(call.output);
    call.is_dirty = true;
  } else if (name == "nested") {
    const Json& step = MemberOf(data, "event");
    Call& call = CallOf(data);
    const std::string type = TextMember(step, "type");
    if (type == "TOOL_CALL") {
      call.nested += "- " + CallLabel(TextMember(step, "tool_name"), TextMember(step, "tool_input")) + "\n";
    } else if (type == "MESSAGE" || type == "ANSWER") {
      call.nested += TextMember(step, "content") + "\n\n";
    } else {
      return updates;
    }
    KeepEnd(call.nested);
    call.is_dirty = true;
  } else if (name == "tool_result") {
    const std::string id = TextMember(data, "id");
    Call& call = CallOf(data);
    const bool failed = MemberOf(data, "is_error") == Json(true);
    call.output = TextMember(data, "tool_output");
    call.is_dirty = false;
    if (failed) call.diff = nullptr;  // nothing was changed
    Json update = {{"sessionUpdate", "tool_call_update"}, {"toolCallId", CallId(id)}};
    if (!call.is_announced) update = Announce(id, call, "pending");
    update["status"] = failed ? "failed" : "completed";
    update["content"] = Content(call);
    updates.push_back(std::move(update));
    call.output.clear();
    call.output.shrink_to_fit();
  } else if (name == "plan_updated") {
    steps_.clear();
    for (const Json& step : MemberOf(data, "steps")) {
      if (step.is_string()) steps_.push_back(step.get<std::string>());
    }
    updates.push_back(Plan());
  } else if (name == "task_updated") {
    tasks_.clear();
    for (const Json& task : MemberOf(data, "tasks")) tasks_.push_back(task);
    updates.push_back(Plan());
  } else if (name == "compacted" && abilities_.compaction) {
    updates.push_back({{"sessionUpdate", "compaction_update"},
                       {"compactionId", interaction_ + "/compaction/" + std::to_string(compactions_++)},
                       {"status", "completed"},
                       {"summary", Json::array({TextBlock(TextMember(data, "summary"))})}});
  } else if ((name == "retry" || name == "loop_detected") && abilities_.notices) {
    const bool is_retry = name == "retry";
    Json notice = {{"sessionUpdate", "notice"},
                   {"severity", "warning"},
                   {"title", is_retry ? "The model did not answer; the request is sent again"
                                      : "The model repeats itself; its call is not run"}};
    const std::string about = is_retry ? TextMember(data, "message") : TextMember(data, "tool_name");
    if (!about.empty()) notice["description"] = about;
    updates.push_back(std::move(notice));
  }
  return updates;
}

}  // namespace reprise::acp
