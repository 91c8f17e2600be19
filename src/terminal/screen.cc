#include "terminal/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/terminal_text.h"
#include "terminal/console.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr int kLeastColumns = 20, kLeastRows = 6;
constexpr int kRowsForInput = 3;         // at least, below the changing lines
constexpr std::size_t kKeptLines = 500;  // for redrawing
// Stands among those for what another program has printed. No line is like it.
constexpr std::string_view kPrintedByOther = "\x1b";

// Makes the web addresses in a line links (OSC 8), to what is written and nowhere else. One that reaches the end of the
// row may go on in the next, so it stays as it is.
std::string WithLinks(std::string_view line, int columns) {
  constexpr std::string_view kNoEnd = ".,;:!?)]}'\"*";
  std::string out;
  int used = 0;  // columns of `out`
  for (std::size_t at = line.find("http"); at != std::string_view::npos; at = line.find("http")) {
    out += line.substr(0, at);
    used += DisplayWidth(line.substr(0, at));
    line.remove_prefix(at);
    const auto other = std::ranges::find_if(line, [](char c) { return c <= ' ' || c > '~' || c == '<' || c == '>'; });
    std::string_view address = line.substr(0, static_cast<std::size_t>(other - line.begin()));
    const bool is_last = other == line.end() && used + DisplayWidth(line) >= columns;
    while (!address.empty() && kNoEnd.find(address.back()) != std::string_view::npos) address.remove_suffix(1);
    const bool is_link = !is_last && (address.starts_with("http://") || address.starts_with("https://"));
    if (!is_link) address = line.substr(0, 4);
    const std::string text(address);
    out += is_link ? "\x1b]8;;" + text + "\a" + text + "\x1b]8;;\a" : text;
    used += static_cast<int>(address.size());
    line.remove_prefix(address.size());
  }
  return out.append(line);
}

}  // namespace

Screen::Screen(TerminalInput& input) : input_(input) {
  MeasureAgain();
  input_.editor()->SetDrawAll([this] { Draw(/*with_input=*/true); });
}

void Screen::MeasureAgain() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
  columns_ = std::max<int>(size.ws_col, kLeastColumns);
  rows_ = std::max<int>(size.ws_row, kLeastRows);
}

int Screen::RowsOf(const std::vector<std::string>& lines) const {
  int rows = 0;
  for (const std::string& line : lines) rows += std::max(1, (DisplayWidth(line) + columns_ - 1) / columns_);
  return rows;
}

void Screen::SetBelow(std::vector<std::string> lines) {
  if (is_plain()) return;
  below_ = std::move(lines);
  // The width of a tab depends on its column.
  for (std::string& line : below_) line = WithoutTabs(line);
}

void Screen::TakeOff(int input_row, std::size_t kept) {
  int rows_above = std::min(input_row, rows_ - 1);
  for (std::size_t i = kept; i < shown_below_.size(); ++i) rows_above += RowsOf({shown_below_[i]});
  shown_below_.resize(kept);
  if (rows_above > 0) Print("\x1b[" + std::to_string(rows_above) + "A");
  Print("\r\x1b[J");
}

// In one piece, because terminals take several times as long line by line.
void Screen::WriteLines() {
  std::string text;
  for (auto& [line, is_line] : pending_) {
    if (!is_line) {
      text.append(line);
      continue;
    }
    const bool has_links = line.find("://") != std::string::npos && !is_plain();
    text.append(has_links ? WithLinks(line, columns_) : line).append("\n");
    last_.push_back(std::move(line));
    if (last_.size() > kKeptLines) last_.pop_front();
  }
  pending_.clear();
  if (!text.empty()) Print(text);
}

// If only lines of one row have changed, as with the status line, draws those alone, so that the rest can be read and
// selected. False if more has changed.
bool Screen::DrawInPlace(const std::vector<std::string>& below, int input_row) {
  if (!pending_.empty() || below.size() != shown_below_.size()) return false;
  std::string text;
  int rows = input_row;  // from the line to the cursor
  for (std::size_t i = below.size(); i-- > 0;) {
    const int rows_of_line = RowsOf({below[i]});
    rows += rows_of_line;
    if (below[i] == shown_below_[i]) continue;
    if (rows_of_line != 1 || RowsOf({shown_below_[i]}) != 1 || rows >= rows_) return false;
    const LineChange change = ChangeOfLine(shown_below_[i], below[i]);
    text += "\x1b[" + std::to_string(rows) + "A\r";
    if (change.column > 0) text += "\x1b[" + std::to_string(change.column) + "C";
    text += change.text + "\0338\0337";
  }
  shown_below_ = below;
  if (!text.empty()) Print("\0337" + text.substr(0, text.size() - 2));
  return true;
}

std::vector<std::string> Screen::Fitting(int input_rows) const {
  int room = std::max(1, rows_ - std::max(input_rows, kRowsForInput));
  std::size_t first = below_.size();
  while (first > 0 && (room -= RowsOf({below_[first - 1]})) >= 0) --first;
  return {below_.begin() + static_cast<std::ptrdiff_t>(first), below_.end()};
}

void Screen::Draw(bool with_input) {
  if (!input_.editing()) {
    WriteLines();
    std::fflush(stdout);
    return;
  }
  if (is_plain()) {  // the prompt is written anew, because lines that appear end the one that is being typed
    if (pending_.empty()) return;
    if (has_prompt_ || !input_.editor()->IsEmpty()) Print("\n");
    WriteLines();
    std::fflush(stdout);
    return input_.editor()->Redraw();
  }
  const int input_row = input_.editor()->RowsAboveCursor();
  const std::vector<std::string> below = Fitting(input_.editor()->Rows());
  if (with_input || !DrawInPlace(below, input_row)) {
    std::size_t kept = 0;
    while (pending_.empty() && kept < std::min(below.size(), shown_below_.size()) &&
           below[kept] == shown_below_[kept]) {
      ++kept;
    }
    TakeOff(input_row, kept);
    WriteLines();
    for (std::size_t i = kept; i < below.size(); ++i) Print(below[i] + "\n");
    shown_below_ = below;
    input_.editor()->Redraw();
  }
  std::fflush(stdout);
}

void Screen::Announce(const std::string& title, const std::string& notice) {
  if (!input_.can_move_cursor()) return;
  std::string text;
  if (title != title_) {
    if (title_.empty()) text += "\x1b[22;2t";  // keeps the former title (xterm's control sequences, Ps = 22)
    text += "\x1b]2;" + VisibleLine(title) + "\a";
    title_ = title;
  }
  if (!notice.empty()) text += "\a\x1b]9;" + VisibleLine(notice) + "\a";
  Print(text);
  std::fflush(stdout);
}

bool Screen::ShowsPictures() {
  if (pictures_) return *pictures_ != PictureForm::kNone;
  const auto variable = [](const char* name) { return std::string_view(std::getenv(name) ? std::getenv(name) : ""); };
  const bool is_within_another = !variable("TMUX").empty() || !variable("STY").empty();
  if (is_plain() || !MayBeAsked(variable("TERM"), is_within_another)) {
    pictures_ = PictureForm::kNone;
  } else if (const auto answers = input_.AskTerminal(kAskForPictures)) {
    pictures_ = PictureFormOf(*answers);
  }
  return pictures_.value_or(PictureForm::kNone) != PictureForm::kNone;
}

void Screen::AddPicture(std::string_view bytes) {
  if (!ShowsPictures()) return;
  PictureSpace space{.columns = columns_, .rows = rows_ / 2};
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_xpixel != 0 && size.ws_ypixel != 0) {
    space.cell_width = size.ws_xpixel / std::max<int>(size.ws_col, 1);
    space.cell_height = size.ws_ypixel / std::max<int>(size.ws_row, 1);
  }
  auto picture = DrawPicture(*pictures_, bytes, picture_, space);
  if (!picture) return;
  ++picture_;
  pending_.push_back({.text = std::move(picture->sequence), .is_line = false});
  Add(picture->lines);
}

void Screen::RestoreTitle() {
  if (!std::exchange(title_, {}).empty()) Print("\x1b[23;2t");
}

void Screen::Lend(const std::function<void()>& use) {
  WriteLines();
  std::fflush(stdout);
  input_.Lend(use);
  last_.emplace_back(kPrintedByOther);
  MeasureAgain();
  if (is_plain()) return;
  // Only if the cursor is not at the beginning of a row do these blanks reach the next one.
  Print(std::string(static_cast<std::size_t>(columns_ - 1), ' ') + "\r\x1b[K");
}

void Screen::Resize() {
  MeasureAgain();
  if (is_plain()) return;
  const std::vector<std::string> below = Fitting(input_.editor()->Rows());
  int room = rows_ - input_.editor()->Rows() - RowsOf(below);
  std::size_t first = last_.size();
  for (; first > 0 && RowsOf({last_[first - 1]}) <= room; --first) room -= RowsOf({last_[first - 1]});
  const auto foreign = std::find(last_.begin() + static_cast<std::ptrdiff_t>(first), last_.end(), kPrintedByOther);
  if (foreign != last_.end()) {  // it cannot be drawn again, so it scrolls up
    Print("\x1b[" + std::to_string(rows_) + "H" + std::string(static_cast<std::size_t>(rows_), '\n'));
    std::replace(foreign, last_.end(), std::string(kPrintedByOther), std::string("(what it printed is further up)"));
  }
  std::string clear;  // row by row, because tmux keeps a screen that is cleared at once in its history
  for (int row = rows_; row > 0; --row) clear += "\x1b[" + std::to_string(row) + ";1H\x1b[2K";
  Print(clear);
  if (first > 0 && room > 0) {  // the beginning of this line has scrolled away
    const std::vector<std::string> rows = HardWrap(last_[first - 1], columns_);
    const std::size_t hidden = rows.size() - std::min(rows.size(), static_cast<std::size_t>(room));
    for (std::size_t i = hidden; i < rows.size(); ++i) Print(rows[i] + "\n");
  }
  for (std::size_t i = first; i < last_.size(); ++i) Print(WithLinks(last_[i], columns_) + "\n");
  for (const std::string& line : below) Print(line + "\n");
  shown_below_ = below;
  input_.editor()->Redraw();
  std::fflush(stdout);
}

template <typename Read>
TerminalInput::Came Screen::AroundInput(const std::string& prompt, const std::string& text, Read read) {
  has_prompt_ = !prompt.empty();
  WriteLines();
  shown_below_ = Fitting(kRowsForInput);
  for (const std::string& line : shown_below_) Print(line + "\n");
  std::fflush(stdout);
  const TerminalInput::Came came = read();
  const bool is_entered = came == TerminalInput::Came::kLine || came == TerminalInput::Came::kEarly;
  if (!is_plain()) TakeOff(input_.editor()->RowsAboveCursor());
  if (is_plain() && came == TerminalInput::Came::kKey) Print(text);  // which nobody has echoed
  if (is_plain() && !is_entered && (has_prompt_ || !text.empty())) Print("\n");
  std::fflush(stdout);
  return came;
}

TerminalInput::Came Screen::ReadMessage(const std::string& prompt, const TerminalInput::Meanwhile& meanwhile,
                                        std::string& message) {
  return AroundInput(prompt, message, [&] { return input_.ReadMessage(prompt, meanwhile, message); });
}

TerminalInput::Came Screen::ReadAnswer(const TerminalInput::Question& question,
                                       const TerminalInput::Meanwhile& meanwhile, std::string& answer) {
  if (meanwhile.proceed()) return TerminalInput::Came::kWithdrawn;
  return AroundInput(question.prompt, answer, [&] { return input_.ReadAnswer(question, meanwhile, answer); });
}

}  // namespace reprise
