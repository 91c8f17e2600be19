#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Whether the beginning of a file looks like text (no NUL in its first 8 KiB).
bool LooksLikeText(std::string_view content);

// One line for a model: valid UTF-8, with control characters as '?'.
std::string OneLine(std::string_view text);

// A path for a message: quoted, on one line, cut if very long.
std::string QuotedPath(std::string_view path);

// Picks lines `first` (from 1) to `first + count - 1` out of a stream of chunks, up to 256 KiB of them.
class LinePicker {
 public:
  // `numbered`: each line begins with its number and a tab.
  LinePicker(std::uint64_t first, std::uint64_t count, bool numbered = false)
      : first_(first), count_(count), numbered_(numbered) {}

  // False if it needs no more.
  bool Add(std::string_view chunk);
  // The lines for a model, and where to continue if there are more. kInvalidArgument if the file has fewer lines.
  Result<std::string> Shown() const;

 private:
  bool Keep(std::string_view piece);
  bool Stop() {
    stopped_ = true;
    return false;
  }
  // Valid only after the whole file.
  std::uint64_t lines() const { return line_ - 1 + (in_line_ ? 1 : 0); }

  const std::uint64_t first_, count_;
  const bool numbered_;
  std::string text_;
  std::uint64_t line_ = 1;  // line of the next byte; at the end, the first line not shown in full
  bool in_line_ = false;
  bool stopped_ = false;
  bool cut_in_line_ = false;
};

}  // namespace reprise
