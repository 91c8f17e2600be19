#pragma once

#include <string>
#include <vector>

#include "terminal/terminal_style.h"

namespace reprise {

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
