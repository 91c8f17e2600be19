#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "terminal/terminal_style.h"

namespace reprise {

struct Language;

// The colour of a line of a unified diff.
Style::Role RoleOfDiffLine(std::string_view line);

// Paints the comments, texts, numbers and keywords of a program, line by line. Knows the lexical outline of the usual
// languages (a table), not their grammar, so it costs about as much as copying the text, whatever that holds.
class CodeColours {
 public:
  // `name`: a language as it is written after a fence ("c++", "py", "diff"), or a path. Unknown ones stay as they are.
  CodeColours(std::string_view name, const Style& style);

  // The next line, without its end and without control characters.
  std::string Paint(std::string_view line);

 private:
  std::size_t EndOfToken(std::string_view line, std::size_t at, Style::Role& role);
  std::size_t EndOfText(std::string_view line, std::size_t at) const;
  std::size_t EndOfOpen(std::string_view line, std::size_t from);
  bool BeginsComment(std::string_view line, std::size_t at) const;

  Style style_;
  bool is_diff_;
  const Language* language_;  // null: unknown
  std::string_view open_;     // the end of the comment or text of several lines that has begun; empty: none
  Style::Role open_role_ = Style::kPlain;
  bool in_tag_ = false;  // of HTML
};

}  // namespace reprise
