#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "terminal/terminal_style.h"

namespace reprise {

struct DiffOptions {
  std::string path;
  int width = 0;            // of the result, in columns; 0 is as wide as it gets
  int max_lines = 0;        // of the result; 0 is all. Fewer than 10 are 10
  std::size_t context = 3;  // lines around each change
};

struct Diff {
  std::vector<std::string> lines;
  bool cut;  // something is left out to keep to `max_lines`; the last line says how much
};

// What becomes of a file, as a unified diff for people; nullopt is a file that is not there. Everything hidden is
// spelled out (VisibleLine), tabs begin with an arrow, and a carriage return is shown unless it ends every line, which
// is said once. What is not UTF-8 text is said to be so. Of lines that replace others, the beginning of both is shown
// where there is no room for all.
//
// Time and memory are bounded: where more than 40,000 lines could match in another order, all are shown as replaced.
Diff DiffLines(std::optional<std::string_view> before, std::optional<std::string_view> after, const Style& style,
               const DiffOptions& options);

// The files of GET .../diff, each with its name, what has become of it and its unified diff.
std::vector<std::string> DrawUnified(const Json& files, const Style& style, int width);
// A line of a unified diff in its colour.
Style::Role RoleOfDiffLine(std::string_view line);

}  // namespace reprise
