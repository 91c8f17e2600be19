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
  int width = 0;            // columns of the result; 0: no limit
  int max_lines = 0;        // lines of the result; 0: all. At least 10
  std::size_t context = 3;  // lines around each change
  bool numbered = false;    // each line begins with its number, in the new file or, if removed, in the old one
};

struct Diff {
  std::vector<std::string> lines;
  bool cut;  // lines were left out because of `max_lines`; the last line says how many
};

// A unified diff for people; nullopt for a file that does not exist. Hidden characters are spelled out (VisibleLine),
// tabs begin with an arrow, and a carriage return is shown, unless it ends every line: then one note says so. Content
// that is not UTF-8 text is only named as such. If replaced and replacing lines do not both fit, the beginning of each
// is shown. Code has the colours of the file's language where the theme has backgrounds for changed lines. What has
// changed in a line that replaces one is marked.
//
// Time and memory are bounded: if more than 40,000 lines could match in another order, all are shown as replaced.
Diff DiffLines(std::optional<std::string_view> before, std::optional<std::string_view> after, const Style& style,
               const DiffOptions& options);

// Draws the files of GET .../diff, each with its name, its kind of change and its unified diff, whose lines are
// numbered.
std::vector<std::string> DrawUnified(const Json& files, const Style& style, int width);

}  // namespace reprise
