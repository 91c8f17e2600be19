#pragma once

#include <string>
#include <vector>

#include "terminal/terminal_style.h"

namespace reprise {

struct TerminalTable {
  enum class Alignment { kLeft, kCentre, kRight };

  // As many of each, and of cells in a row, as there are columns. Cells may be painted.
  std::vector<std::string> header;
  std::vector<Alignment> alignments;
  std::vector<std::vector<std::string>> rows;
};

// The table in columns that fit into `width`: cells of the widest ones are wrapped. If that leaves too little of them,
// each cell is a line of its own, "header: value".
std::vector<std::string> TableLines(const TerminalTable& table, const Style& style, int width);

}  // namespace reprise
