#include "terminal/run_view.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/terminal_text.h"
#include "domain/codec.h"
#include "domain/transcript/event_visitor.h"
#include "domain/transcript/transcript.h"
#include "terminal/diff_view.h"
#include "terminal/question_text.h"
#include "terminal/run_text.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

// For tool results and diffs. Their ends count, because errors and sums stand there.
constexpr std::size_t kResultHead = 3, kResultTail = 5, kDiffHead = 40, kDiffTail = 5;
constexpr std::size_t kPathCharacters = 200;      // of files that a recorded call has changed
constexpr std::size_t kMostFolded = 100;          // texts
constexpr std::size_t kMostUnfolded = 10'000;     // lines
constexpr std::size_t kOutputLines = 5;           // of a running command's output
constexpr std::size_t kKeptOutput = 8 << 10;      // bytes
constexpr std::size_t kKeptThinking = 256 << 10;  // bytes
constexpr std::size_t kKeptLine = 1 << 10;        // bytes of a thought, for the line below
constexpr std::size_t kThought = 100;             // characters of a thought that stays
constexpr std::array<const char*, 10> kSpinner{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
constexpr std::chrono::milliseconds kSpinnerStep{100};
constexpr std::uint64_t kNearlyFull = 85;  // percent of the limit of a request

void KeepEnd(std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return;
  text.erase(0, text.size() - bytes);
  // Not in the middle of a character.
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0) == 0x80) text.erase(0, 1);
}

// Events of their own show the effects of these tools.
bool TellsItself(const std::string& tool) { return tool == "update_plan" || tool == "manage_tasks"; }

std::string Seconds(std::chrono::steady_clock::duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 60) return std::to_string(seconds) + " s";
  return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
}

}  // namespace

void RunView::Begin(bool live) {
  End();
  live_ = live;
  running_ = true;
  begun_ = Clock::now();
  said_ = false;
  thought_in_.reset();
  labels_.clear();
  named_.clear();
  output_.clear();
  answered_.clear();
  allowed_.clear();
  diff_shown_.clear();
  failure_.clear();
  doing_ = "starting";
  input_tokens_ = output_tokens_ = 0;
}

void RunView::End() {
  EndThinking({});
  EndText();
  if (running_ && live_ && input_tokens_ + output_tokens_ != 0) {
    Note("(" + Seconds(Clock::now() - begun_) + ", " + Grouped(input_tokens_ + output_tokens_) + " tokens)");
  }
  if (running_ && live_ && nearly_full_ != 0 && !std::exchange(told_nearly_full_, true)) {
    Note("(the conversation has " + Grouped(context_tokens_) + " tokens; beyond " + Grouped(nearly_full_) +
         " the oldest messages are summarised. With /compact the next message does so)");
  }
  running_ = false;
  output_.clear();
}

void RunView::Resized() {
  if (text_) text_->SetWidth(screen_.columns());
}

void RunView::Note(const std::string& text) { Fact(Style::kDim, text); }

void RunView::Fact(Style::Role role, const std::string& text) {
  for (const std::string& line : Wrap(VisibleLine(text), screen_.columns(), "", "  ")) {
    screen_.Add(style_.Paint(role, line));
  }
}

void RunView::EndText() {
  if (!text_) return;
  screen_.Add(text_->End());
  text_.reset();
}

// Shows the thought in a line; `whole` replaces the collected pieces if it is not empty.
void RunView::EndThinking(const std::string& whole) {
  if (!whole.empty()) thinking_ = whole;
  if (thinking_.empty()) return;
  const auto time = Clock::now() - thinking_since_;
  const bool timed = live_ && thinking_since_ != Clock::time_point{} && time >= std::chrono::seconds(1);
  std::string line = timed ? "thought for " + Seconds(time) + ": " : "thought: ";
  const std::string visible = VisibleLine(thinking_), shown = Shortened(visible, kThought);
  if (shown.size() < visible.size()) {
    Fold("thought", [this, text = std::exchange(thinking_, {})] {
      return Wrap(Indented(text, ""), screen_.columns(), "  ", "  ");
    });
  }
  thinking_.clear();
  thinking_since_ = {};
  Fact(Style::kDim, line + shown);
}

void RunView::AddThought(const std::string& piece, std::uint64_t round) {
  if (thinking_since_ == Clock::time_point{}) thinking_since_ = Clock::now();
  if (thinking_.size() < kKeptThinking) thinking_ += piece;
  thought_in_ = round;
  doing_ = "thinking";
}

void RunView::ShowText(const std::string& text) {
  if (!text_) {
    EndThinking({});
    text_.emplace(style_, screen_.columns());
  }
  screen_.Add(text_->Add(text));
}

std::string RunView::Label(const std::string& call) const {
  const auto label = labels_.find(call);
  return label == labels_.end() ? "" : label->second;
}

void RunView::ShowOutput(const event::ToolOutputDelta& output) {
  std::string& kept = output_[output.id];
  kept += output.content;
  KeepEnd(kept, kKeptOutput);
}

void RunView::Fold(std::string title, std::function<std::vector<std::string>()> draw) {
  if (folded_.size() == kMostFolded) folded_.pop_front();
  folded_.push_back({std::move(title), std::move(draw)});
  unfolded_last_ = false;
}

// Shows `head` and `tail` of these lines, which may be painted.
void RunView::ShowFolded(std::vector<std::string> lines, Style::Role role, std::size_t head, std::size_t tail) {
  const std::size_t hidden = lines.size() > head + tail + 1 ? lines.size() - head - tail : 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (hidden > 0 && i == head) {
      Note("  ... " + Counted(hidden, "more line") + " (Ctrl-O shows them)");
      i += hidden;
    }
    screen_.Add(style_.Paint(role, CutToWidth("  " + lines[i], screen_.columns())));
  }
}

bool RunView::Unfold() {
  if (folded_.empty()) return false;
  const std::size_t first = unfolded_last_ ? 0 : folded_.size() - 1;
  unfolded_last_ = true;
  for (std::size_t i = first; i < folded_.size(); ++i) {
    screen_.Add(style_.Paint(Style::kBold, CutToWidth(folded_[i].title + ":", screen_.columns())));
    std::vector<std::string> lines = folded_[i].draw();
    const std::size_t more = lines.size() - std::min(lines.size(), kMostUnfolded);
    lines.resize(lines.size() - more);
    screen_.Add(lines);
    if (more > 0) Note("  ... " + Counted(more, "more line") + " (`reprise show` prints all)");
  }
  return true;
}

// Shows both ends of a result; a failure in another colour.
void RunView::ShowResult(const event::ToolResult& result) {
  EndText();
  const auto& [id, tool, text, failed, files] = result;
  output_.erase(id);
  doing_ = "waiting for the model";
  if (!failed && TellsItself(tool)) return;
  if (tool == "ask_human" && answered_.contains(id)) return;  // repeats the answer
  std::vector<std::string> lines = OutputLines(text, style_);
  const std::string title = Label(id).empty() ? VisibleLine(tool) : Label(id);
  if (std::exchange(named_, id) != id) {
    screen_.Add(style_.Paint(Style::kDim, CutToWidth("  " + title + ":", screen_.columns())));
  }
  const bool is_folded =
      lines.size() > kResultHead + kResultTail + 1 ||
      std::ranges::any_of(lines, [&](const std::string& line) { return DisplayWidth(line) + 2 > screen_.columns(); });
  if (is_folded) {
    Fold(title, [this, kept = text] {
      std::vector<std::string> whole;
      for (const std::string& line : OutputLines(kept, style_)) {
        for (std::string& row : HardWrap(line, screen_.columns(), "  ", "  ")) whole.push_back(std::move(row));
      }
      return whole;
    });
  }
  ShowFolded(std::move(lines), failed ? Style::kError : Style::kDim, kResultHead, kResultTail);
}

void RunView::ShowDiff(const std::string& call, const Json& files) {
  if (!WantsDiff(call) || files.empty()) return;
  if (std::exchange(named_, call) != call && !Label(call).empty()) Note("  " + Label(call) + ":");
  std::vector<std::string> lines = DrawUnified(files, style_, screen_.columns() - 2);
  if (lines.size() > kDiffHead + kDiffTail + 1) {
    Fold("changes by " + Label(call), [this, files] { return DrawUnified(files, style_, screen_.columns()); });
  }
  ShowFolded(std::move(lines), Style::kPlain, kDiffHead, kDiffTail);
}

void RunView::ShowFile(const Attachment& file) {
  Note("  " + FileText(file));
  // The server knows the type only if the model takes pictures.
  const bool may_be_png = file.mime_type == "image/png" || file.filename.ends_with(".png");
  if (live_ && show_picture_ && may_be_png) show_picture_(file);
}

void RunView::ShowNested(const event::Nested& nested) {
  if (const auto* const call = std::get_if<event::ToolCallStarted>(&nested.step)) {
    const std::string label = CallLabel(call->tool_name, call->tool_input);
    Note("  sub-agent: " + label);
    doing_ = "sub-agent: " + label;
  } else if (const auto* const search = std::get_if<event::WebSearch>(&nested.step)) {
    Note("  sub-agent: web search: " + search->query);
  } else if (const auto* const failed = std::get_if<event::Failed>(&nested.step)) {
    Note("  sub-agent: " + failed->message);
  } else if (const auto* const retry = std::get_if<event::Retry>(&nested.step)) {
    Note("  sub-agent: " + retry->message);
  }
}

void RunView::ShowAnswer(const std::string& content) {
  if (!std::exchange(said_, false)) ShowText(content);
  EndText();
  doing_ = "finishing";
}

void RunView::ShowCall(const event::ToolCallStarted& call) {
  EndText();
  EndThinking({});
  const std::string label = CallLabel(call.tool_name, call.tool_input);
  labels_[call.id] = label;
  doing_ = "running " + label;
  if (TellsItself(call.tool_name)) return;
  const std::string mark = allowed_.contains(call.id) ? "  ✓ allowed" : "";
  const std::string line = CutToWidth("● " + label, std::max(10, screen_.columns() - DisplayWidth(mark)));
  screen_.Add(style_.Paint(Style::kAccent, line) + style_.Paint(Style::kAdded, mark));
  named_ = call.id;
}

void RunView::ShowRejected(const event::Rejected& rejected) {
  Fact(Style::kRemoved, std::string("✗ ") +
                            (rejected.expired      ? "not answered in time"
                             : rejected.superseded ? "withdrawn: the call has changed since it was shown"
                                                   : "rejected") +
                            ": " + Label(rejected.call_id));
}

void RunView::ShowUsage(const event::Usage& usage) {
  const auto count = [](std::int64_t tokens) { return static_cast<std::uint64_t>(std::max<std::int64_t>(tokens, 0)); };
  input_tokens_ += count(usage.tokens.input_tokens);
  output_tokens_ += count(usage.tokens.output_tokens);
  context_tokens_ = count(usage.tokens.input_tokens) + count(usage.tokens.output_tokens);
  if (const std::uint64_t limit = count(usage.context_limit); limit != 0) {
    context_window_ = count(usage.context_window);
    nearly_full_ = context_tokens_ * 100 >= limit * kNearlyFull ? limit : 0;
    if (nearly_full_ == 0) told_nearly_full_ = false;
  }
  labels_.clear();  // the next response has new calls
}

void RunView::ShowSources(const std::vector<Citation>& citations) {
  if (citations.empty()) return;
  Note("sources:");
  for (const std::string& line : LinesOf(SourceLines(SourcesOf(citations)))) Note("  " + line);
}

void RunView::ShowSearch(const event::WebSearch& search) {
  EndText();
  const auto found = static_cast<std::uint64_t>(search.omitted) + search.results.size();
  const std::string outcome = search.error.empty() ? Counted(found, "result") : "failed: " + search.error;
  Note("● searched the web: " + search.query + " (" + outcome + ")");
  for (const std::string& line : LinesOf(SourceLines(search.results, search.omitted))) Note("  " + line);
}

void RunView::ShowPlan(const std::vector<std::string>& steps) {
  Fact(Style::kBold, "plan");
  for (std::size_t i = 0; i < steps.size(); ++i)
    screen_.Add("  " + std::to_string(i + 1) + ". " + VisibleLine(steps[i]));
}

void RunView::ShowTasks(const std::vector<Task>& tasks) {
  Fact(Style::kBold, "tasks");
  for (const Task& task : tasks) {
    const char* const mark = task.status == "done" ? "☑ " : task.status == "doing" ? "◐ " : "☐ ";
    screen_.Add("  " + (mark + VisibleLine(task.title)));
  }
}

void RunView::ShowCompacted(const event::Compacted& compacted) {
  const auto before = static_cast<std::uint64_t>(compacted.tokens_before);
  context_tokens_ = static_cast<std::uint64_t>(compacted.tokens_after);
  nearly_full_ = 0;
  told_nearly_full_ = false;
  const std::string what =
      compacted.results > 0 ? "old tool results are no longer sent: " : "older messages are summarised from now on: ";
  Note("(" + what + Grouped(before) + " -> " + Grouped(context_tokens_) + " tokens)");
}

void RunView::ShowLoop(const event::LoopDetected& loop) {
  Fact(Style::kWarning, (loop.pattern == "same_error"    ? "(the same error again and again: "
                         : loop.pattern == "no_progress" ? "(the model's calls make no progress: "
                                                         : "(the model makes the same call again and again: ") +
                            loop.tool_name + ")");
}

// For a live run the diff follows.
void RunView::ShowChanged(const event::FilesChanged& changed) {
  std::string paths;
  for (const std::string& path : ShownPaths(changed.changes)) paths += (paths.empty() ? "" : ", ") + path;
  if (!live_ && !paths.empty()) Note("  changed: " + Shortened(paths, kPathCharacters));
  if (changed.omitted > 0) {
    Note("  and " + Counted(static_cast<std::uint64_t>(changed.omitted), "more file") + ", not recorded");
  }
  if (changed.unseen) Note("  (what it changed is not recorded)");
}

void RunView::Heard(const AgentEvent& event) {
  std::visit(Overload{
                 Ignoring<event::GrantsUpdated, event::SoundDelta>(),
                 [&](const event::Sound& e) {
                   for (const Attachment& file : e.files) ShowFile(file);
                 },
                 [&](const event::TextDelta& e) {
                   said_ = true;
                   doing_ = "writing";
                   ShowText(e.content);
                 },
                 [&](const event::ThinkingDelta& e) { AddThought(e.content, event.round_index); },
                 [&](const event::Thinking& e) {
                   const bool shown = thinking_.empty() && thought_in_ == event.round_index;
                   if (!shown) EndThinking(e.content);
                 },
                 [&](const event::MessageText& e) {
                   ShowAnswer(e.content);
                   ShowSources(e.citations);
                 },
                 [&](const event::WebSearch& e) { ShowSearch(e); },
                 [&](const event::Answer& e) {
                   ShowAnswer(e.content);
                   ShowSources(e.citations);
                   if (e.content.find_first_not_of(" \t\r\n") == std::string::npos) Note("(an empty answer)");
                   if (!e.reason.empty()) Fact(Style::kWarning, "(cut off: " + e.reason + ")");
                 },
                 [&](const event::InteractionStarted& e) {
                   model_ = e.model;
                   doing_ = "waiting for " + (model_.empty() ? "the model" : VisibleLine(model_));
                   for (const Attachment& file : e.attachments) ShowFile(file);
                 },
                 [&](const event::ToolCallStarted& e) { ShowCall(e); },
                 [&](const event::ApprovalRequired& e) {
                   EndText();
                   if (e.tool_name != kNetworkTool) labels_[e.call_id] = CallLabel(e.tool_name, e.tool_input);
                 },
                 [&](const event::InputRequired&) { EndText(); },
                 [&](const event::Approved& e) {
                   doing_ = "running " + Label(e.call_id);
                   allowed_.insert(e.call_id);
                   if (e.tool_input) Fact(Style::kAdded, "✓ allowed, with other arguments");
                   if (e.outside_sandbox) Fact(Style::kWarning, "✓ allowed outside the sandbox");
                 },
                 [&](const event::Rejected& e) { ShowRejected(e); },
                 [&](const event::InputReceived& e) {
                   answered_.insert(e.call_id);
                   doing_ = "waiting for the model";
                   Note("  " + e.response.value_or("(declined)"));
                 },
                 [&](const event::ToolOutputDelta& e) { ShowOutput(e); },
                 [&](const event::ToolResult& e) {
                   ShowResult(e);
                   for (const Attachment& file : e.files) ShowFile(file);
                 },
                 [&](const event::PlanUpdated& e) { ShowPlan(e.steps); },
                 [&](const event::TaskUpdated& e) { ShowTasks(e.tasks); },
                 [&](const event::Usage& e) { ShowUsage(e); },
                 [&](const event::Nested& e) { ShowNested(e); },
                 [&](const event::Compacted& e) { ShowCompacted(e); },
                 [&](const event::LoopDetected& e) { ShowLoop(e); },
                 [&](const event::SentBack& e) {
                   EndText();
                   Fact(Style::kWarning, "(a check sends the agent back: " + e.content + ")");
                 },
                 [&](const event::JobStarted& e) { Note("  background job " + e.job_id + " runs: /jobs shows it"); },
                 [&](const event::JobEnded& e) {
                   const std::string status = e.status ? " " + std::to_string(*e.status) : "";
                   Note("  background job " + e.job_id + " has ended (" + e.reason + status + ")");
                 },
                 [&](const event::Retry& e) {
                   EndText();
                   Fact(Style::kWarning,
                        "(trying again in " + std::to_string((e.delay_ms + 999) / 1000) + " s: " + e.message + ")");
                   doing_ = "waiting to try again";
                 },
                 [&](const event::FilesChanged& e) { ShowChanged(e); },
                 [&](const event::Cancelled& e) {
                   EndText();
                   Fact(Style::kWarning, CancelledText(e.reason));
                 },
                 [&](const event::Failed& e) {
                   EndText();
                   failure_ = e.code;
                   Fact(Style::kError, "error: " + e.message);
                 },
                 [&](const event::InteractionComplete& e) {
                   if (live_ && e.status == InteractionStatus::kFailed) Note("(" + NextStep(failure_, model_) + ")");
                 },
             },
             event.payload);
}

std::string RunView::StatusLine(bool asks) const {
  const auto passed = Clock::now() - begun_;
  const auto step = static_cast<std::size_t>(passed / kSpinnerStep);
  std::string line = std::string(kSpinner[step % kSpinner.size()]) + " " + (asks ? "waiting for you" : doing_) + " · " +
                     Seconds(passed);
  if (const auto tokens = input_tokens_ + output_tokens_; tokens != 0) {
    line += " · " + Grouped(tokens) + " tokens";
  }
  return line + " · Ctrl-C stops";
}

std::string RunView::Context() const {
  if (context_window_ == 0 || context_tokens_ == 0) return {};
  return "context " + std::to_string(context_tokens_ * 100 / context_window_) + " %";
}

std::vector<std::string> RunView::Below(bool asks) const {
  std::vector<std::string> below;
  if (text_) below = text_->Tail();
  for (const auto& [id, kept] : output_) {
    const std::vector<std::string> lines = OutputLines(kept, style_);
    for (std::size_t i = lines.size() - std::min(lines.size(), kOutputLines); i < lines.size(); ++i) {
      below.push_back(style_.Paint(Style::kDim, CutToWidth("  │ " + lines[i], screen_.columns())));
    }
  }
  if (!thinking_.empty()) {
    std::string line = thinking_;
    KeepEnd(line, kKeptLine);
    line = WithoutTabs(VisibleLine(line));
    if (const std::size_t room = static_cast<std::size_t>(std::max(10, screen_.columns() - 4)); line.size() > room) {
      KeepEnd(line, room);
    }
    below.push_back(style_.Paint(Style::kDim, CutToWidth("  " + line, screen_.columns())));
  }
  if (running_ && live_)
    below.push_back(style_.Paint(Style::kDim, CutToWidth(WithoutTabs(StatusLine(asks)), screen_.columns())));
  return below;
}

}  // namespace reprise
