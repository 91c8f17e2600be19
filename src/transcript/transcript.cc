#include "transcript/transcript.h"

#include <time.h>

#include <chrono>
#include <ctime>
#include <string_view>
#include <variant>

#include "base/terminal_text.h"
#include "domain/codec.h"
#include "transcript/event_visitor.h"
#include "transcript/file_line.h"

namespace reprise {
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
  std::string operator()(const event::MessageText& e) const { return Entry("agent", e.content); }
  std::string operator()(const event::Answer& e) const {
    return Entry("agent", e.content) + (e.reason.empty() ? "" : Entry("cut off", e.reason));
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
    const std::string scope = e.scope == "chat" ? "for this chat" : e.scope == "always" ? "for always" : "once";
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
  std::string operator()(const event::PlanUpdated& e) const {
    std::string list;
    for (const std::string& step : e.steps) list += (list.empty() ? "" : "\n") + step;
    return Entry("plan", list);
  }
  std::string operator()(const event::GrantsUpdated& e) const {
    std::string list;
    for (const Grant& grant : e.grants) list += (list.empty() ? "" : "\n") + grant.tool_name;
    return Entry("granted", list.empty() ? "nothing" : list);
  }
  std::string operator()(const event::FilesChanged& e) const {
    std::string list;
    for (const std::string& path : ShownPaths(e.changes)) list += (list.empty() ? "" : "\n") + path;
    if (e.omitted > 0) {
      const std::string more = Counted(static_cast<std::uint64_t>(e.omitted), "more file");
      list += (list.empty() ? "and " : "\nand ") + more + ", not recorded";
    }
    return Entry("files", list);
  }
  std::string operator()(const event::Retry& e) const { return Entry("retried", e.message + " (" + e.code + ")"); }
  std::string operator()(const event::LoopDetected& e) const {
    const std::string times = std::to_string(e.count);
    if (e.pattern == "same_error") return Entry("loop", e.tool_name + " failed in the same way " + times + " times");
    if (e.pattern == "no_progress") return Entry("loop", "nothing new in " + times + " rounds, last of " + e.tool_name);
    return Entry("loop", e.tool_name + " was called " + times + " times in a circle");
  }
  std::string operator()(const event::Compacted& e) const {
    return Entry("compacted", std::to_string(e.messages) + " messages: " + e.summary);
  }
  std::string operator()(const event::Nested& e) const {
    const std::string step = std::visit(*this, e.step);
    return step.empty() ? step : "    " + Indented(std::string_view(step).substr(0, step.size() - 1), "    ") + "\n";
  }
  std::string operator()(const event::Cancelled& e) const { return Entry("cancelled", e.reason); }
  std::string operator()(const event::Failed& e) const { return Entry("error", e.message + " (" + e.code + ")"); }
};

}  // namespace

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
  if (interaction.edited_from) out += "  edit of " + interaction.edited_from->str();
  if (superseded) out += "  superseded";
  out += "\n";
  if (!interaction.user_message.empty()) out += Entry("you", interaction.user_message);
  if (!interaction.attachments.empty()) out += Entry("files", FileLines(interaction.attachments));
  for (const AgentEvent& agent_event : interaction.events) out += std::visit(TranscriptWriter{}, agent_event.payload);
  return out;
}

}  // namespace reprise
