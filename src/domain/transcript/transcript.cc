#include "domain/transcript/transcript.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "domain/codec.h"
#include "domain/transcript/event_visitor.h"

namespace reprise {
namespace {

Json PlainMessage(Message message) {
  const auto extras = ParseJson(message.extras.empty() ? "{}" : message.extras, 2 * kMaxJsonDepth);
  message.extras.clear();
  message.parts.clear();  // other programs do not know our files; the text names them
  Json json = ToJson(message);
  // Content in parts counts as content.
  if (!message.content && extras && extras->is_object() && extras->contains("content"))
    json["content"] = (*extras)["content"];
  return json;
}

}  // namespace

std::string ConversationLine(const AgentState& state) {
  Json messages = Json::array();
  for (const Message& message : state.messages) messages.push_back(PlainMessage(message));
  return DumpJson(Json{{"messages", std::move(messages)}}) + "\n";
}

void RunState::Settle(const std::string& question_id) {
  std::erase_if(open, [&](const PendingQuestion& each) { return QuestionId(each) == question_id; });
}

void RunState::Take(const AgentEvent& event) {
  std::visit(Overload{
                 Ignoring<event::ThinkingDelta, event::TextDelta, event::Thinking, event::MessageText,
                          event::ToolCallStarted, event::ToolOutputDelta, event::ToolResult, event::TaskUpdated,
                          event::PlanUpdated, event::GrantsUpdated, event::Usage, event::Retry, event::LoopDetected,
                          event::SentBack, event::SoundDelta, event::Sound, event::WebSearch, event::Compacted,
                          event::Nested, event::FilesChanged, event::JobStarted, event::JobEnded>(),
                 [&](const event::InteractionStarted& e) {
                   const auto chat = ChatId::Parse(e.chat_id);
                   const auto interaction = InteractionId::Parse(e.interaction_id);
                   if (chat && interaction) run = InteractionRef{*chat, *interaction};
                   model = e.model;
                 },
                 [&](const event::ApprovalRequired& e) {
                   if (run) open.emplace_back(PendingApproval{run->chat_id, run->interaction_id, e});
                 },
                 [&](const event::InputRequired& e) {
                   if (run) open.emplace_back(PendingInput{run->chat_id, run->interaction_id, e});
                 },
                 [&](const event::Approved& e) { Settle(e.approval_id); },
                 [&](const event::Rejected& e) { Settle(e.approval_id); },
                 [&](const event::InputReceived& e) { Settle(e.request_id); },
                 [&](const event::Answer& e) { answer = e; },
                 [&](const event::Cancelled& e) {
                   cancelled = e;
                   open.clear();
                 },
                 [&](const event::Failed& e) { failure = e; },
                 [&](const event::InteractionComplete& e) {
                   status = e.status;
                   open.clear();
                 },
             },
             event.payload);
}

namespace {

constexpr std::size_t kLabelWidth = 10;

std::string Labelled(std::string_view label, const std::string& shown) {
  std::string line = "  " + std::string(label);
  line.resize(2 + kLabelWidth, ' ');
  return line + shown + "\n";
}

std::string Entry(std::string_view label, std::string_view text) {
  return Labelled(label, Indented(text, std::string(2 + kLabelWidth, ' ')));
}

// For texts that a person has decided or will decide on: with all hidden characters visible.
std::string ExactEntry(std::string_view label, std::string_view text) {
  return Labelled(label, VisibleText(text, std::string(2 + kLabelWidth, ' ')));
}

struct TranscriptWriter : IgnoredEvents {
  using IgnoredEvents::operator();
  std::string operator()(const event::Thinking& e) const { return Entry("thinking", e.content); }
  std::string operator()(const event::MessageText& e) const { return Entry("agent", e.content) + Sources(e.citations); }
  std::string operator()(const event::Answer& e) const {
    return Entry("agent", e.content) + Sources(e.citations) + (e.reason.empty() ? "" : Entry("cut off", e.reason));
  }
  std::string operator()(const event::Sound& e) const { return Entry("spoken", FileLines(e.files)); }
  std::string operator()(const event::WebSearch& e) const {
    const std::string list = SourceLines(e.results, e.omitted);
    return Entry("web search", e.query + (e.error.empty() ? "" : " (failed: " + e.error + ")")) +
           (list.empty() ? "" : Entry("found", list));
  }
  static std::string Sources(const std::vector<Citation>& citations) {
    return citations.empty() ? "" : Entry("sources", SourceLines(SourcesOf(citations)));
  }
  std::string operator()(const event::ToolCallStarted& e) const {
    return ExactEntry("tool", e.tool_name + " " + e.tool_input);
  }
  std::string operator()(const event::ToolResult& e) const {
    return Entry(e.is_error ? "failed" : "result", e.tool_output) +
           (e.files.empty() ? "" : Entry("files", FileLines(e.files)));
  }
  std::string operator()(const event::ApprovalRequired& e) const {
    return ExactEntry("asked", e.tool_name + " " + e.tool_input + "\n(" + e.reason + ", risk " + e.risk + ")");
  }
  std::string operator()(const event::Approved& e) const {
    const std::string scope = e.outside_sandbox     ? "once, outside the sandbox"
                              : e.scope == "chat"   ? "for this chat"
                              : e.scope == "always" ? "for always"
                                                    : "once";
    return ExactEntry("approved", e.tool_input ? scope + ", with other arguments: " + *e.tool_input : scope);
  }
  std::string operator()(const event::Rejected& e) const {
    if (e.superseded) return Entry("withdrawn", "what was shown is not so any more");
    return Entry("rejected", e.expired ? "nobody answered in time" : e.feedback.value_or(""));
  }
  std::string operator()(const event::InputRequired& e) const { return Entry("question", e.question); }
  std::string operator()(const event::InputReceived& e) const {
    return Entry("response", e.response.value_or("(declined)"));
  }
  std::string operator()(const event::TaskUpdated& e) const {
    std::string list;
    for (const Task& task : e.tasks) list += (list.empty() ? "[" : "\n[") + task.status + "] " + task.title;
    return Entry("tasks", list);
  }
  std::string operator()(const event::PlanUpdated& e) const { return Entry("plan", Joined(e.steps, "\n")); }
  std::string operator()(const event::GrantsUpdated& e) const {
    std::string list;
    for (const Grant& grant : e.grants) list += (list.empty() ? "" : "\n") + grant.tool_name;
    return Entry("granted", list.empty() ? "nothing" : list);
  }
  std::string operator()(const event::FilesChanged& e) const {
    std::string list = Joined(ShownPaths(e.changes), "\n");
    if (e.omitted > 0) {
      const std::string more = Counted(static_cast<std::uint64_t>(e.omitted), "more file");
      list += (list.empty() ? "and " : "\nand ") + more + ", not recorded";
    }
    if (e.unseen) list += std::string(list.empty() ? "" : "\n") + "what the call changed is not recorded";
    return Entry("files", list);
  }
  std::string operator()(const event::Retry& e) const { return Entry("retried", e.message + " (" + e.code + ")"); }
  std::string operator()(const event::LoopDetected& e) const {
    const std::string times = std::to_string(e.count);
    if (e.pattern == "same_error") return Entry("loop", e.tool_name + " failed in the same way " + times + " times");
    if (e.pattern == "no_progress") return Entry("loop", "nothing new in " + times + " rounds, last of " + e.tool_name);
    return Entry("loop", e.tool_name + " was called " + times + " times in a circle");
  }
  std::string operator()(const event::JobStarted& e) const { return Entry("job", e.job_id + " runs: " + e.command); }
  std::string operator()(const event::JobEnded& e) const {
    const std::string status = e.status ? " " + std::to_string(*e.status) : "";
    return Entry("job", e.job_id + " has ended (" + e.reason + status + "): " + e.command);
  }
  std::string operator()(const event::Compacted& e) const {
    if (e.results > 0) return Entry("cleared", std::to_string(e.results) + " tool results");
    return Entry("compacted", std::to_string(e.messages) + " messages: " + e.summary);
  }
  std::string operator()(const event::SentBack& e) const { return Entry("sent back", e.content); }
  std::string operator()(const event::Nested& e) const {
    const std::string step = std::visit(*this, e.step);
    return step.empty() ? step : "    " + Indented(std::string_view(step).substr(0, step.size() - 1), "    ") + "\n";
  }
  std::string operator()(const event::Cancelled& e) const { return Entry("cancelled", e.reason); }
  std::string operator()(const event::Failed& e) const { return Entry("error", e.message + " (" + e.code + ")"); }
};

// Of which interaction it is another form.
std::string Origin(const Interaction& interaction) {
  const std::string name = interaction.edited_from->str();
  const bool is_trial = interaction.record && interaction.record->what_if;
  return is_trial ? "what if, from event " + std::to_string(*interaction.record->what_if) + " of " + name
                  : "edit of " + name;
}

}  // namespace

std::string SourceLines(const std::vector<WebSource>& sources, std::int64_t omitted) {
  std::string lines;
  for (const WebSource& source : sources) {
    lines += (lines.empty() ? "" : "\n") + source.url + (source.title.empty() ? "" : " (" + source.title + ")");
  }
  if (omitted > 0) {
    lines += (lines.empty() ? "" : "\n") + Counted(static_cast<std::uint64_t>(omitted), "more result") + ", not shown";
  }
  return lines;
}

std::string FormatForReading(Timestamp time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm local{};
  char text[64];
  if (::localtime_r(&seconds, &local) == nullptr) return FormatTimestamp(time);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

std::string FormatHeading(const ChatSummary& summary) {
  return summary.id.str() + "  " + VisibleLine(summary.title) + "\n";
}

std::string FormatInteraction(const Interaction& interaction, bool superseded) {
  std::string out = interaction.id.str() + "  " + std::string(ToString(interaction.status)) + "  " +
                    FormatForReading(interaction.created_at) + "  " + VisibleLine(interaction.model) + "  " +
                    std::to_string(interaction.usage.input_tokens) + " tokens in, " +
                    std::to_string(interaction.usage.output_tokens) + " out";
  if (interaction.edited_from) out += "  " + Origin(interaction);
  if (superseded) out += "  superseded";
  out += "\n";
  if (!interaction.user_message.empty()) out += Entry("you", interaction.user_message);
  if (!interaction.attachments.empty()) out += Entry("files", FileLines(interaction.attachments));
  for (const AgentEvent& agent_event : interaction.events) out += std::visit(TranscriptWriter{}, agent_event.payload);
  return out;
}

namespace {

// A JSON string is a YAML string too.
std::string Quoted(std::string_view text) { return DumpJson(Json(VisibleLine(text))); }

// Appends the text so that no HTML tag begins in it.
void AppendWithoutTags(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\n';
    const bool tag = text[at] == '<' && (next == '/' || next == '!' || next == '?' || (next >= 'a' && next <= 'z') ||
                                         (next >= 'A' && next <= 'Z'));
    tag ? void(out += "&lt;") : out.push_back(text[at]);
  }
}

std::size_t FenceOf(std::string_view line) { return std::min(line.find_first_not_of('`'), line.size()); }

// Whether all code blocks are ones that every Markdown reader recognizes: fences of backticks that begin a line.
bool HasPlainFences(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t fence = FenceOf(line);
    const bool marked = line.find("```") != std::string_view::npos || line.find("~~~") != std::string_view::npos;
    if (marked &&
        (fence < 3 || line.find('`', fence) != std::string_view::npos || line.find("~~~") != std::string_view::npos)) {
      return false;
    }
  }
  return true;
}

// Keeps tags only in code, where they are text.
std::string WithoutTags(std::string_view text) {
  const bool knows_code = HasPlainFences(text);
  std::string out;
  std::size_t code = 0;  // the fence of the block we are in
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const bool last = line.size() == text.size();
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t fence = FenceOf(line);
    if (code > 0) {
      out += line;
      if (fence >= code && line.find_first_not_of(" \t", fence) == std::string_view::npos) code = 0;
    } else {
      AppendWithoutTags(out, line);
      if (knows_code && fence >= 3) code = fence;
    }
    if (!last) out += '\n';
  }
  return out;
}

std::string Quote(std::string_view text) { return "> " + Indented(WithoutTags(text), "> ") + "\n"; }
std::string Line(std::string_view text) { return VisibleLine(WithoutTags(text)); }

// A fence longer than any run of backticks in the text.
std::string Fenced(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fence + "\n" + Indented(text, "") + "\n" + fence + "\n";
}

// The name in backticks.
std::string Code(std::string_view name) {
  std::string text = VisibleLine(name);
  std::ranges::replace(text, '`', '\'');
  return "`" + text + "`";
}

std::string Files(const std::vector<Attachment>& files) {
  return files.empty() ? std::string() : "\n*Files*\n\n" + Quote(FileLines(files));
}

struct MarkdownWriter : IgnoredEvents {
  using IgnoredEvents::operator();
  std::string operator()(const event::Thinking& e) const { return "*Thinking*\n\n" + Quote(e.content); }
  std::string operator()(const event::MessageText& e) const {
    return "**Agent**\n\n" + Quote(e.content) + Cited(e.citations);
  }
  std::string operator()(const event::Answer& e) const {
    const std::string cut = e.reason.empty() ? "" : "\n*Cut off:* " + VisibleLine(e.reason) + "\n";
    return "**Agent**\n\n" + Quote(e.content) + cut + Cited(e.citations);
  }
  std::string operator()(const event::Sound& e) const { return "*Spoken*\n\n" + Quote(FileLines(e.files)); }
  std::string operator()(const event::WebSearch& e) const {
    const std::string failed = e.error.empty() ? "" : " *(failed: " + Line(e.error) + ")*";
    return "*Searched the web:* " + Code(e.query) + failed + "\n" + Pages(e.results);
  }
  static std::string Cited(const std::vector<Citation>& citations) {
    return citations.empty() ? "" : "\n*Sources*\n" + Pages(SourcesOf(citations));
  }
  // As code, because the words of a page could be a link to something else.
  static std::string Pages(const std::vector<WebSource>& pages) {
    std::string out = pages.empty() ? "" : "\n";
    for (const WebSource& page : pages) {
      out += "- " + Code(page.url) + (page.title.empty() ? "" : ": " + Code(page.title)) + "\n";
    }
    return out;
  }
  std::string operator()(const event::ToolCallStarted& e) const {
    return "**Tool** " + Code(e.tool_name) + "\n\n" + Fenced(e.tool_input);
  }
  std::string operator()(const event::ToolResult& e) const {
    return std::string(e.is_error ? "**Failed**" : "**Result**") + "\n\n" + Fenced(e.tool_output) + Files(e.files);
  }
  std::string operator()(const event::ApprovalRequired& e) const {
    return "*Asked for approval of* " + Code(e.tool_name) + "\n";
  }
  std::string operator()(const event::Approved& e) const {
    const std::string how = e.outside_sandbox ? "*Approved, outside the sandbox" : "*Approved";
    return e.tool_input ? how + ", with other arguments*\n\n" + Fenced(*e.tool_input) : how + "*\n";
  }
  std::string operator()(const event::Rejected& e) const {
    if (e.superseded) return "*Withdrawn: what was shown is not so any more*\n";
    if (e.expired) return "*Not approved in time*\n";
    return e.feedback ? "*Rejected*\n\n" + Quote(*e.feedback) : "*Rejected*\n";
  }
  std::string operator()(const event::InputRequired& e) const { return "*Asked you*\n\n" + Quote(e.question); }
  std::string operator()(const event::InputReceived& e) const {
    return e.response ? "**You**\n\n" + Quote(*e.response) : "*Declined to answer*\n";
  }
  std::string operator()(const event::TaskUpdated& e) const {
    std::string out = "*Tasks*\n\n";
    for (const Task& task : e.tasks) out += "- " + task.status + ": " + Line(task.title) + "\n";
    return out;
  }
  std::string operator()(const event::PlanUpdated& e) const {
    std::string out = "*Plan*\n\n";
    for (const std::string& step : e.steps) out += "- " + Line(step) + "\n";
    return out;
  }
  std::string operator()(const event::GrantsUpdated& e) const {
    std::string out = "*Granted in this chat*\n\n";
    for (const Grant& grant : e.grants) out += "- " + Code(grant.tool_name) + "\n";
    return out;
  }
  std::string operator()(const event::Cancelled& e) const { return "*Cancelled:* " + Line(e.reason) + "\n"; }
  std::string operator()(const event::Failed& e) const { return "*Error:* " + Line(e.message) + "\n"; }
  std::string operator()(const event::FilesChanged& e) const {
    std::string out = "*Changed files*\n\n";
    for (const std::string& path : ShownPaths(e.changes)) out += "- " + Code(path) + "\n";
    if (e.omitted > 0) {
      out += "- and " + Counted(static_cast<std::uint64_t>(e.omitted), "more file") + ", not recorded\n";
    }
    if (e.unseen) out += "- what the call changed is not recorded\n";
    return out;
  }
  std::string operator()(const event::Retry& e) const { return "*Retried:* " + Line(e.message) + "\n"; }
  std::string operator()(const event::LoopDetected& e) const {
    return "*Went round in a circle:* " + Code(e.tool_name) + ", " + std::to_string(e.count) + " times\n";
  }
  std::string operator()(const event::JobStarted& e) const {
    return "*Background job " + e.job_id + " runs:* " + Code(e.command) + "\n";
  }
  std::string operator()(const event::JobEnded& e) const {
    const std::string status = e.status ? " " + std::to_string(*e.status) : "";
    return "*Background job " + e.job_id + " has ended:* " + e.reason + status + "\n";
  }
  std::string operator()(const event::Compacted& e) const {
    if (e.results > 0) return "*No longer sent to the model:* " + std::to_string(e.results) + " tool results\n";
    return "*Sent to the model as a summary:* " + std::to_string(e.messages) + " messages\n";
  }
  std::string operator()(const event::SentBack& e) const { return "*Sent back by a check:* " + Line(e.content) + "\n"; }
  std::string operator()(const event::Nested& e) const {
    const std::string step = std::visit(*this, e.step);
    return step.empty() ? step : "*Sub-agent*\n\n" + Quote(step.substr(0, step.size() - 1));
  }
};

std::string Turn(const MarkdownTurn& turn) {
  const Interaction& interaction = *turn.interaction;
  std::string out = "\n## " + interaction.id.str() + " · " + FormatTimestamp(interaction.created_at) + " · " +
                    std::string(ToString(interaction.status));
  if (interaction.parent_id) out += " · after " + interaction.parent_id->str();
  if (interaction.edited_from) out += " · " + Origin(interaction);
  if (turn.superseded) out += " · superseded";
  out += "\n";
  if (!interaction.user_message.empty()) out += "\n**You**\n\n" + Quote(interaction.user_message);
  out += Files(interaction.attachments);
  for (const AgentEvent& agent_event : interaction.events) {
    const std::string text = std::visit(MarkdownWriter{}, agent_event.payload);
    if (!text.empty()) out += "\n" + text;
  }
  return out;
}

}  // namespace

std::string FormatMarkdown(const ChatSummary& summary, const std::vector<MarkdownTurn>& turns) {
  std::string out = "---\nchat: " + Quoted(summary.id.str()) + "\ntitle: " + Quoted(summary.title) +
                    "\ncreated_at: " + Quoted(FormatTimestamp(summary.created_at)) +
                    "\nupdated_at: " + Quoted(FormatTimestamp(summary.updated_at)) + "\n---\n\n# " +
                    Line(summary.title) + "\n";
  for (const MarkdownTurn& turn : turns) out += Turn(turn);
  return out;
}

}  // namespace reprise
