#include "terminal/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "terminal/console.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr int kLeastColumns = 20, kLeastRows = 6;
constexpr int kRowsForInput = 3;  // at least, below what changes

}  // namespace

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
  below_ = std::move(lines);
  // How wide a tab is depends on where it stands.
  for (std::string& line : below_) line = WithoutTabs(line);
}

// Goes up by so many rows, and by those of what is shown below, and clears everything from there on.
void Screen::TakeOff(int rows_above) {
  // The terminal has wrapped these lines anew if it became narrower.
  rows_above += RowsOf(shown_below_);
  shown_below_.clear();
  if (rows_above > 0) Print("\x1b[" + std::to_string(rows_above) + "A");
  Print("\r\x1b[J");
}

// In one piece: a terminal that gets a line at a time works several times as much.
void Screen::WriteLines() {
  std::string text;
  for (const std::string& line : pending_) text.append(line).append("\n");
  pending_.clear();
  if (!text.empty()) Print(text);
}

void Screen::Draw() {
  if (!input_.editing()) {
    WriteLines();
    std::fflush(stdout);
    return;
  }
  const int input_rows = input_.editor()->RowsAboveCursor(columns_) + kRowsForInput;
  while (!below_.empty() && RowsOf(below_) > std::max(1, rows_ - input_rows)) below_.erase(below_.begin());
  if (pending_.empty() && below_ == shown_below_) return;
  TakeOff(std::min(input_.editor()->RowsAboveCursor(columns_), rows_ - 1));
  WriteLines();
  for (const std::string& line : below_) Print(line + "\n");
  shown_below_ = below_;
  input_.editor()->Redraw();
  std::fflush(stdout);
}

template <typename Read>
TerminalInput::Came Screen::AroundInput(Read read) {
  WriteLines();
  for (const std::string& line : below_) Print(line + "\n");
  shown_below_ = below_;
  std::fflush(stdout);
  const TerminalInput::Came came = read();
  const bool entered = came == TerminalInput::Came::kLine;
  TakeOff(std::min(entered ? input_.editor()->Rows(columns_) : input_.editor()->RowsAboveCursor(columns_), rows_ - 1));
  std::fflush(stdout);
  return came;
}

TerminalInput::Came Screen::ReadMessage(const std::string& prompt, const TerminalInput::Meanwhile& meanwhile,
                                        std::string& message) {
  return AroundInput([&] { return input_.ReadMessage(prompt, meanwhile, message); });
}

TerminalInput::Came Screen::ReadAnswer(const std::string& prompt, const TerminalInput::Meanwhile& meanwhile,
                                       std::string& answer) {
  if (meanwhile.proceed()) return TerminalInput::Came::kWithdrawn;
  return AroundInput([&] { return input_.ReadAnswer(prompt, meanwhile, answer); });
}

}  // namespace reprise
