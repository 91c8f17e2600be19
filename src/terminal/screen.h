#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "terminal/terminal_input.h"

namespace reprise {

// What a person sees of a conversation at a terminal: lines that stay and scroll away, below them a few that change
// (how the unfinished answer looks now, what it is doing), and below those the line that is edited. Lines may hold
// colours and nothing else that steers the terminal. For one thread.
class Screen {
 public:
  explicit Screen(TerminalInput& input) : input_(input) { MeasureAgain(); }

  int columns() const { return columns_; }
  int rows() const { return rows_; }
  // That these lines take.
  int RowsOf(const std::vector<std::string>& lines) const;
  // Brings the terminal up to date after it has been given another size: whether it has wrapped its lines anew is not
  // known, so that all it shows is drawn again.
  void Resize();

  // A line that stays, or several. Shown by the next Draw.
  void Add(std::string line) { pending_.push_back(std::move(line)); }
  void Add(const std::vector<std::string>& lines) { pending_.insert(pending_.end(), lines.begin(), lines.end()); }
  // What stands below from the next Draw on. Of more than the terminal has room for, the last lines are shown.
  void SetBelow(std::vector<std::string> lines);

  // Brings the terminal up to date, around the line that is edited if there is one. Without one, nothing is below.
  void Draw();

  // As TerminalInput's. What was edited is taken off the screen; whoever wants it to stay adds it.
  TerminalInput::Came ReadMessage(const std::string& prompt, const TerminalInput::Meanwhile& meanwhile,
                                  std::string& message);
  TerminalInput::Came ReadAnswer(const TerminalInput::Question& question, const TerminalInput::Meanwhile& meanwhile,
                                 std::string& answer);

 private:
  void MeasureAgain();
  template <typename Read>
  TerminalInput::Came AroundInput(Read read);
  // Takes off the line that is edited, in whose row `input_row` the cursor is, and what is below but its first `kept`
  // lines.
  void TakeOff(int input_row, std::size_t kept = 0);
  bool DrawInPlace(int input_row);
  void WriteLines();

  TerminalInput& input_;
  int columns_ = 80, rows_ = 24;
  std::vector<std::string> pending_, below_;
  std::vector<std::string> shown_below_;  // on the terminal now
  std::deque<std::string> last_;          // of the lines that stay
};

}  // namespace reprise
