#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "reprise/event.h"
#include "terminal/markdown_stream.h"
#include "terminal/screen.h"
#include "terminal/terminal_style.h"

namespace reprise {

// Shows the events of one run after another: final text as lines of the screen that stay, the rest (unfinished text, a
// command's output, the present activity and its time) as lines for the place below. For one thread.
class RunView {
 public:
  RunView(Screen& screen, const Style& style) : screen_(screen), style_(style) {}

  // Begins a run, or a recorded one (not `live`), which is shown without times and costs.
  void Begin(bool live);
  void Heard(const AgentEvent& event);
  // The screen has another width now.
  void Resized();
  // The run is over or interrupted: shows unfinished text as it is.
  void End();

  void ShowTasks(const std::vector<Task>& tasks);
  void ShowPlan(const std::vector<std::string>& steps);
  // Shows a call's changes of files: `files` as in GET .../diff. Skips a diff that a question has shown.
  void ShowDiff(const std::string& call, const Json& files);
  // A question has shown this call's changes of files.
  void DiffIsShown(const std::string& call) { diff_shown_.insert(call); }
  bool WantsDiff(const std::string& call) const { return !diff_shown_.contains(call); }

  // `show` may show a picture that a live run tells of, below its name.
  void SetPictures(std::function<void(const Attachment&)> show) { show_picture_ = std::move(show); }

  // Shows the last folded text, and the next time all folded texts. False if there is none.
  bool Unfold();

  // The lines for the place below, now. `asks`: a question waits for the person.
  std::vector<std::string> Below(bool asks) const;
  // The tokens of the last request and its response, with which the next request begins.
  std::uint64_t context_tokens() const { return context_tokens_; }
  // "context 12 %": how much of the model's window the conversation fills; empty if unknown.
  std::string Context() const;
  // Another conversation begins.
  void ForgetContext() { context_tokens_ = context_window_ = 0; }
  // 0 if unknown.
  void SetContextWindow(std::uint64_t tokens) { context_window_ = tokens; }

 private:
  using Clock = std::chrono::steady_clock;

  void EndText();
  void AddThought(const std::string& piece, std::uint64_t round);
  void EndThinking(const std::string& whole);
  void ShowText(const std::string& text);
  void ShowAnswer(const std::string& content);
  void ShowCall(const event::ToolCallStarted& call);
  void ShowResult(const event::ToolResult& result);
  void Fold(std::string title, std::function<std::vector<std::string>()> draw);
  void ShowFolded(std::vector<std::string> lines, Style::Role role, std::size_t head, std::size_t tail);
  void ShowNested(const event::Nested& nested);
  void ShowOutput(const event::ToolOutputDelta& output);
  void ShowRejected(const event::Rejected& rejected);
  void ShowUsage(const event::Usage& usage);
  void ShowSources(const std::vector<Citation>& citations);
  void ShowSearch(const event::WebSearch& search);
  void ShowFile(const Attachment& file);
  void ShowCompacted(const event::Compacted& compacted);
  void ShowLoop(const event::LoopDetected& loop);
  void ShowChanged(const event::FilesChanged& changed);
  void Note(const std::string& text);
  void Fact(Style::Role role, const std::string& text);
  std::string Label(const std::string& call) const;
  std::string StatusLine(bool asks) const;

  Screen& screen_;
  const Style& style_;
  std::function<void(const Attachment&)> show_picture_;  // may be empty

  bool live_ = false, running_ = false;
  Clock::time_point begun_{}, thinking_since_{};
  std::optional<MarkdownStream> text_;
  bool said_ = false;                          // the answer was shown piece by piece
  std::string thinking_;                       // so far, up to a limit
  std::optional<std::uint64_t> thought_in_;    // the round whose thinking was shown from its pieces
  std::map<std::string, std::string> labels_;  // by call id
  std::string named_;                          // the call of the last lines
  std::map<std::string, std::string> output_;  // the end of each call's output so far, by call id
  std::set<std::string> answered_;             // calls whose question has an answer
  std::set<std::string> allowed_;              // calls that a person has allowed
  std::set<std::string> diff_shown_;
  std::string doing_, model_;
  std::string failure_;  // the code of the run's last error
  std::uint64_t input_tokens_ = 0, output_tokens_ = 0, context_tokens_ = 0, context_window_ = 0;
  std::uint64_t nearly_full_ = 0;  // the limit that the conversation has nearly reached; 0: none
  bool told_nearly_full_ = false;

  // A text that was cut.
  struct Folded {
    std::string title;
    std::function<std::vector<std::string>()> draw;
  };
  std::deque<Folded> folded_;
  bool unfolded_last_ = false;
};

}  // namespace reprise
