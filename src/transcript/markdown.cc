#include "transcript/markdown.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "base/json.h"
#include "base/terminal_text.h"
#include "domain/codec.h"
#include "transcript/event_visitor.h"
#include "transcript/file_line.h"
#include "transcript/transcript.h"

namespace reprise {
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
  std::replace(text.begin(), text.end(), '`', '\'');
  return "`" + text + "`";
}

std::string Files(const std::vector<Attachment>& files) {
  return files.empty() ? std::string() : "\n*Files*\n\n" + Quote(FileLines(files));
}

struct MarkdownWriter : IgnoredEvents {
  using IgnoredEvents::operator();
  std::string operator()(const event::Thinking& e) const { return "*Thinking*\n\n" + Quote(e.content); }
  std::string operator()(const event::MessageText& e) const { return "**Agent**\n\n" + Quote(e.content); }
  std::string operator()(const event::Answer& e) const {
    const std::string cut = e.reason.empty() ? "" : "\n*Cut off:* " + VisibleLine(e.reason) + "\n";
    return "**Agent**\n\n" + Quote(e.content) + cut;
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
    return e.tool_input ? "*Approved, with other arguments*\n\n" + Fenced(*e.tool_input) : "*Approved*\n";
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
    return out;
  }
  std::string operator()(const event::Retry& e) const { return "*Retried:* " + Line(e.message) + "\n"; }
  std::string operator()(const event::LoopDetected& e) const {
    return "*Went round in a circle:* " + Code(e.tool_name) + ", " + std::to_string(e.count) + " times\n";
  }
  std::string operator()(const event::Compacted& e) const {
    return "*Sent to the model as a summary:* " + std::to_string(e.messages) + " messages\n";
  }
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
  if (interaction.edited_from) out += " · edit of " + interaction.edited_from->str();
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
