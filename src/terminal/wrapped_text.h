#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/terminal_style.h"

// Fits text and tables into the columns of a terminal. It may be painted by Style and holds no other control characters
// (see terminal_text.h). Widths of characters are those of wcwidth: LC_CTYPE must be a UTF-8 locale.

namespace reprise {

// In columns: 0 for a combining character, 2 for a wide one. A tab counts as one; see WithoutTabs.
int DisplayWidth(std::string_view text);

// `text` in lines of at most `width` columns, the first one indented with `first_indent` and the others with
// `hanging_indent`. Breaks at spaces, which are dropped there, and within words that are wider than a line. A line end
// in `text` begins a line, and a tab is a space. Painting stops at the end of a line and begins again on the next. At
// least one line. REQUIRES: both indents leave two columns.
std::vector<std::string> Wrap(std::string_view text, int width, std::string_view first_indent = {},
                              std::string_view hanging_indent = {});

// The same for one line of code: breaks after exactly `width` columns, and keeps every space.
std::vector<std::string> HardWrap(std::string_view line, int width, std::string_view first_indent = {},
                                  std::string_view hanging_indent = {});

// Replaces tabs by spaces up to the next multiple of four columns, each beginning with `mark` (one column, or empty).
std::string WithoutTabs(std::string_view line, std::string_view mark = {});

// The first `width` columns, ending with "…" if text was cut.
std::string CutToWidth(std::string_view text, int width);

// How a painted line of the terminal becomes another one: `text` is written from the column on.
struct LineChange {
  int column = 0;
  std::string text;
};
LineChange ChangeOfLine(std::string_view before, std::string_view after);

// Places in a line, in characters; marks on a character belong to it.
struct TextSpan {
  std::size_t begin = 0, end = 0;
};
// The characters of a text that is not painted.
std::vector<std::string_view> CharactersOf(std::string_view text);
// Adds a Style sequence to a part of a painted line.
std::string WithPaintOn(std::string_view line, TextSpan part, std::string_view paint);

struct TerminalTable {
  enum class Alignment { kLeft, kCentre, kRight };

  // Alignments and the cells of each row are as many as the columns. Cells may be painted.
  std::vector<std::string> header;
  std::vector<Alignment> alignments;
  std::vector<std::vector<std::string>> rows;
};

// The table in columns that fit into `width`: the widest ones are wrapped. If that leaves too little, each cell becomes
// a line of its own, "header: value".
std::vector<std::string> TableLines(const TerminalTable& table, const Style& style, int width);

}  // namespace reprise
