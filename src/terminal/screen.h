#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/pictures.h"
#include "terminal/terminal_input.h"

namespace reprise {

// A conversation on a terminal: lines that stay and scroll away, below them a few that change (the unfinished answer,
// the present activity), and below those the edited line. Lines may hold colours, but no other control sequences. A
// *plain* terminal cannot move its cursor, and gets only the lines that stay. For one thread.
class Screen {
 public:
  // REQUIRES: `input` is a terminal, and outlives this.
  explicit Screen(TerminalInput& input);

  bool is_plain() const { return !input_.can_move_cursor(); }
  int columns() const { return columns_; }
  int rows() const { return rows_; }
  // The rows that these lines take.
  int RowsOf(const std::vector<std::string>& lines) const;
  // Draws everything again after a change of the terminal's size, because it is unknown whether the terminal has
  // rewrapped its lines.
  void Resize();

  // Sets the window's title. `notice`, if not empty, rings the bell, and asks the terminal to tell the person (OSC 9).
  void Announce(const std::string& title, const std::string& notice = {});
  // Gives the window its former title back.
  void RestoreTitle();
  // Lends the terminal to another program, whose output stays above what comes next.
  void Lend(const std::function<void()>& use);

  // Adds lines that stay, for the next Draw.
  void Add(std::string line) { pending_.push_back({std::move(line)}); }
  void Add(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Add(line);
  }
  // Whether the terminal can show pictures. Asks it when called first, which takes a moment.
  bool ShowsPictures();
  // Adds a picture below these lines; none if the terminal cannot show these bytes.
  void AddPicture(std::string_view bytes);
  // Sets the lines below for the next Draw. If they do not all fit, the last ones are shown.
  void SetBelow(std::vector<std::string> lines);

  // Updates the terminal, around the edited line if there is one. Without one, the lines below are hidden.
  void Draw(bool with_input = false);

  // Like TerminalInput's. The edited text is removed from the screen; callers that want it to stay add it.
  TerminalInput::Came ReadMessage(const std::string& prompt, const TerminalInput::Meanwhile& meanwhile,
                                  std::string& message);
  TerminalInput::Came ReadAnswer(const TerminalInput::Question& question, const TerminalInput::Meanwhile& meanwhile,
                                 std::string& answer);

 private:
  void MeasureAgain();
  template <typename Read>
  TerminalInput::Came AroundInput(const std::string& prompt, const std::string& text, Read read);
  // Removes the edited line, whose cursor is in its row `input_row`, and the lines below except the first `kept`.
  void TakeOff(int input_row, std::size_t kept = 0);
  // The last of the lines below that fit above so many rows of the edited text.
  std::vector<std::string> Fitting(int input_rows) const;
  bool DrawInPlace(const std::vector<std::string>& below, int input_row);
  void WriteLines();

  TerminalInput& input_;
  int columns_ = 80, rows_ = 24;
  struct Pending {
    std::string text;
    bool is_line = true;  // else a sequence that is written once
  };
  std::vector<Pending> pending_;
  std::vector<std::string> below_;
  std::vector<std::string> shown_below_;  // on the terminal now
  bool has_prompt_ = false;               // the edited line has one
  std::deque<std::string> last_;          // the last lines that stay
  std::string title_;                     // empty: the terminal's own
  std::optional<PictureForm> pictures_;   // nullopt: not asked yet
  unsigned picture_ = 0;                  // the number of the next one
};

}  // namespace reprise
