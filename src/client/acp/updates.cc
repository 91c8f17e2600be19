#include "client/acp/updates.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/terminal_text.h"
#include "base/text_edits.h"
#include "client/acp/terminal_tool.h"
#include "domain/transcript/event_visitor.h"
#include "terminal/question_text.h"

namespace reprise::acp {
namespace {

constexpr const char* kText = "agent_message_chunk";
constexpr const char* kThought = "agent_thought_chunk";
constexpr std::chrono::milliseconds kBetweenOutputs{100};
constexpr std::size_t kMaxOutput = 16'384;  // of a running tool, because each update repeats it

Json TextBlock(const std::string& text) { return {{"type", "text"}, {"text", text}}; }
Json LinkBlock(const WebSource& source) {
  return {{"type", "resource_link"}, {"uri", source.url}, {"name", source.title.empty() ? source.url : source.title}};
}
Json TextContent(const std::string& text) { return {{"type", "content"}, {"content", TextBlock(text)}}; }

const char* KindOf(std::string_view tool) {
  struct Known {
    std::string_view tool;
    const char* kind;
  };
  static constexpr Known kKinds[] = {
      {"read_file", "read"},      {"list_files", "read"},
      {"read_chat_file", "read"}, {"list_chat_files", "read"},
      {"write_file", "edit"},     {"apply_patch", "edit"},
      {"edit_file", "edit"},      {"save_chat_file", "edit"},
      {"delete_file", "delete"},  {"delete_chat_file", "delete"},
      {"move_file", "move"},      {"search_files", "search"},
      {"find_files", "search"},   {"run_shell", "execute"},
      {"run_code", "execute"},    {"http_get", "fetch"},
      {"manage_tasks", "think"},  {"update_plan", "think"},
      {"research", "think"},      {"present_plan", "switch_mode"},
      {"recall", "search"},       {TerminalTool::kName, "execute"},
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

// A block of code with a fence longer than any in the text.
std::string Fenced(const std::string& text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fence + "\n" + text + (text.ends_with('\n') ? "" : "\n") + fence;
}

// Cuts a long text to its end, without splitting a character.
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

// The arguments for the editor, which may read numbers as doubles; sent as text if that would round a number.
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

// `whole` repeats the deltas; sends only the part that has not been shown.
void Updates::TakeText(std::vector<Json>& updates, const char* kind, std::string& shown, const std::string& whole) {
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

// Empty `tool` and `input` are unknown and change nothing.
Updates::Call& Updates::CallOf(const std::string& id, const std::string& tool, const std::string& input) {
  Call& call = calls_[id];
  if (!tool.empty()) call.tool_name = tool;
  if (!input.empty() && input != call.tool_input) {
    call.tool_input = input;
    // For a call without a question, or with changed arguments.
    call.diff = nullptr;
    const Json arguments = JsonOf(input);
    const std::string path = FullPath(TextMember(arguments, "path"));
    if (call.tool_name == "write_file" && MemberOf(arguments, "content").is_string()) {
      call.diff = {{"type", "diff"}, {"path", path}, {"newText", TextMember(arguments, "content")}};
    } else if (const auto edits = EditsIn(arguments); call.tool_name == "edit_file" && edits) {
      call.diff = Json::array();
      for (const TextEdit& edit : *edits) {
        call.diff.push_back({{"type", "diff"}, {"path", path}, {"oldText", edit.old_text}, {"newText", edit.new_text}});
      }
    }
  }
  return call;
}

void Updates::SetDiffs(const std::string& call_id, const Json& change) {
  Json diffs = Json::array();
  const auto add = [&](const Json& each) {
    diffs.push_back({{"type", "diff"},
                     {"path", FullPath(TextMember(each, "path"))},
                     {"oldText", MemberOf(each, "before")},
                     {"newText", TextMember(each, "after")}});
  };
  add(change);
  if (const Json& more = MemberOf(change, "more"); more.is_array()) std::ranges::for_each(more, add);
  calls_[call_id].diff = std::move(diffs);
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
  if (call.diff.is_array()) content.insert(content.end(), call.diff.begin(), call.diff.end());
  if (call.diff.is_object()) content.push_back(call.diff);
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
  for (const Task& task : tasks_) {
    entries.push_back({{"content", task.title},
                       {"priority", "medium"},
                       {"status", task.status == "done"    ? "completed"
                                  : task.status == "doing" ? "in_progress"
                                                           : "pending"}});
  }
  return {{"sessionUpdate", "plan"}, {"entries", std::move(entries)}};
}

bool Updates::HoldsOutput() const {
  return std::ranges::any_of(calls_, [](const auto& each) { return each.second.is_dirty; });
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

void Updates::TakePiece(std::vector<Json>& updates, const char* kind, std::string& shown, const std::string& piece) {
  if (held_kind_ != kind) FlushText(updates);
  held_kind_ = kind;
  held_ += piece;
  shown += piece;
}

Json Updates::Started(const event::ToolCallStarted& started) {
  Call& call = CallOf(started.id, started.tool_name, started.tool_input);
  call.asked.clear();
  if (call.tool_name == TerminalTool::kName) {
    terminal_call_ = started.id;
    call.terminal = std::exchange(terminal_, {});
  }
  return Announce(started.id, call, "in_progress");
}

Json Updates::Asked(const event::ApprovalRequired& asked) {
  Call& call = CallOf(asked.call_id, asked.tool_name, asked.tool_input);
  call.asked.clear();
  if (!asked.reason.empty()) call.asked.push_back(TextContent(VisibleLine(asked.reason)));
  if (const std::string escaped = EscapeHidden(asked.tool_input); escaped != asked.tool_input) {
    call.asked.push_back(TextContent("Characters that cannot be seen, spelled out:\n" + Fenced(escaped)));
  }
  return Announce(asked.call_id, call, "pending");
}

// A call that a person was asked about is shown as one of its own, and the others as text of the call.
void Updates::AddNested(std::vector<Json>& updates, const event::Nested& nested) {
  if (auto call = std::get_if<event::ToolCallStarted>(&nested.step)) {
    event::ToolCallStarted own = *call;
    own.id = event::NestedCallId(nested.call_id, own.id);
    if (calls_.contains(own.id)) updates.push_back(Started(own));
  } else if (auto result = std::get_if<event::ToolResult>(&nested.step)) {
    event::ToolResult own = *result;
    own.id = event::NestedCallId(nested.call_id, own.id);
    if (calls_.contains(own.id)) updates.push_back(Ended(own));
  }
  std::string shown;
  std::visit(
      Overload{Ignoring<event::Thinking, event::ToolResult, event::Usage, event::Retry, event::LoopDetected,
                        event::Compacted, event::Failed>(),
               [&](const event::WebSearch& e) { shown = "- web search: " + VisibleLine(e.query) + "\n"; },
               [&](const event::ToolCallStarted& e) { shown = "- " + CallLabel(e.tool_name, e.tool_input) + "\n"; },
               [&](const event::MessageText& e) { shown = e.content + "\n\n"; },
               [&](const event::Answer& e) { shown = e.content + "\n\n"; }},
      nested.step);
  Call& call = calls_[nested.call_id];
  if (shown.empty()) return;
  call.nested += shown;
  KeepEnd(call.nested);
  call.is_dirty = true;
}

Json Updates::Ended(const event::ToolResult& result) {
  Call& call = CallOf(result.id, result.tool_name, "");
  call.output = result.tool_output;
  call.is_dirty = false;
  if (result.is_error) call.diff = nullptr;  // the file was not changed
  Json update = {{"sessionUpdate", "tool_call_update"}, {"toolCallId", CallId(result.id)}};
  if (!call.is_announced) update = Announce(result.id, call, "pending");
  update["status"] = result.is_error ? "failed" : "completed";
  update["content"] = Content(call);
  call.output.clear();
  call.output.shrink_to_fit();
  return update;
}

// The pages that the text before cites, as links.
void Updates::AddSources(std::vector<Json>& updates, const std::vector<Citation>& citations) const {
  for (const WebSource& source : SourcesOf(citations)) {
    updates.push_back({{"sessionUpdate", kText}, {"content", LinkBlock(source)}});
  }
}

// The provider has run the search, so it is shown as a call that has ended.
Json Updates::Searched(const event::WebSearch& search) {
  Json content = Json::array();
  for (const WebSource& result : search.results) {
    content.push_back({{"type", "content"}, {"content", LinkBlock(result)}});
  }
  if (!search.error.empty()) content.push_back(TextContent(VisibleLine(search.error)));
  return {{"sessionUpdate", "tool_call"},
          {"toolCallId", interaction_ + "/web_search/" + std::to_string(searches_++)},
          {"title", "Web search: " + VisibleLine(search.query)},
          {"kind", "search"},
          {"status", search.error.empty() ? "completed" : "failed"},
          {"content", std::move(content)}};
}

Json Updates::Notice(const char* title, const std::string& about) const {
  Json notice = {{"sessionUpdate", "notice"}, {"severity", "warning"}, {"title", title}};
  if (!about.empty()) notice["description"] = about;
  return notice;
}

std::vector<Json> Updates::Take(const AgentEvent& event) {
  std::vector<Json> updates;
  const auto say = [&](const std::string& content) {
    TakeText(updates, kText, text_, content);
    ++message_;
  };
  if (!IsDelta(event.payload)) FlushText(updates);
  std::visit(Overload{
                 Ignoring<event::InteractionStarted, event::Rejected, event::InputRequired, event::InputReceived,
                          event::SoundDelta, event::Sound, event::GrantsUpdated, event::Usage, event::FilesChanged,
                          event::Cancelled, event::Failed, event::InteractionComplete>(),
                 [&](const event::TextDelta& e) { TakePiece(updates, kText, text_, e.content); },
                 [&](const event::ThinkingDelta& e) { TakePiece(updates, kThought, thought_, e.content); },
                 [&](const event::Thinking& e) { TakeText(updates, kThought, thought_, e.content); },
                 [&](const event::MessageText& e) {
                   say(e.content);
                   AddSources(updates, e.citations);
                 },
                 [&](const event::Answer& e) {
                   say(e.content);
                   AddSources(updates, e.citations);
                 },
                 [&](const event::WebSearch& e) { updates.push_back(Searched(e)); },
                 [&](const event::ToolCallStarted& e) { updates.push_back(Started(e)); },
                 [&](const event::ApprovalRequired& e) { updates.push_back(Asked(e)); },
                 [&](const event::Approved& e) {
                   if (e.tool_input)
                     updates.push_back(Announce(e.call_id, CallOf(e.call_id, "", *e.tool_input), "pending"));
                   if (!e.mode.empty())
                     updates.push_back({{"sessionUpdate", "current_mode_update"}, {"currentModeId", e.mode}});
                 },
                 [&](const event::ToolOutputDelta& e) {
                   Call& call = CallOf(e.id, e.tool_name, "");
                   call.output += e.content;
                   KeepEnd(call.output);
                   call.is_dirty = true;
                 },
                 [&](const event::Nested& e) { AddNested(updates, e); },
                 [&](const event::ToolResult& e) { updates.push_back(Ended(e)); },
                 [&](const event::PlanUpdated& e) {
                   steps_ = e.steps;
                   updates.push_back(Plan());
                 },
                 [&](const event::TaskUpdated& e) {
                   tasks_ = e.tasks;
                   updates.push_back(Plan());
                 },
                 [&](const event::Compacted& e) {
                   if (!abilities_.compaction || e.results > 0) return;
                   const std::string id = interaction_ + "/compaction/" + std::to_string(compactions_++);
                   updates.push_back({{"sessionUpdate", "compaction_update"},
                                      {"compactionId", id},
                                      {"status", "completed"},
                                      {"summary", Json::array({TextBlock(e.summary)})}});
                 },
                 [&](const event::SentBack& e) {
                   if (!abilities_.notices) return;
                   updates.push_back(Notice("A check sends the agent back", e.content));
                 },
                 [&](const event::Retry& e) {
                   if (!abilities_.notices) return;
                   updates.push_back(Notice("The model did not answer; the request is sent again", e.message));
                 },
                 [&](const event::JobStarted& e) {
                   if (abilities_.notices) updates.push_back(Notice("A background job runs", e.command));
                 },
                 [&](const event::JobEnded& e) {
                   if (abilities_.notices) updates.push_back(Notice("A background job has ended", e.command));
                 },
                 [&](const event::LoopDetected& e) {
                   if (!abilities_.notices) return;
                   updates.push_back(Notice("The model repeats itself; its call is not run", e.tool_name));
                 },
             },
             event.payload);
  return updates;
}

}  // namespace reprise::acp
