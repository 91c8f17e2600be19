#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/terminal_style.h"

namespace reprise {

// Narrower terminals get lines of this many columns.
inline constexpr int kNarrowestMarkdown = 16;

// A whole piece of Markdown (GitHub's) as lines for a terminal, at most `width` columns wide. HTML is shown as text.
// Line ends within a paragraph stay, because authors of chat messages mean them. The address of a link follows its
// text. If given, `first_number` replaces a list's first number. Nothing in `markdown` controls the terminal
// (terminal_text.h).
std::vector<std::string> MarkdownLines(std::string_view markdown, const Style& style, int width,
                                       std::optional<unsigned> first_number = std::nullopt);

// The same lines without Markdown, only wrapped.
std::vector<std::string> PlainLines(std::string_view text, int width);

// The line above a block of code, mostly its language.
std::vector<std::string> CodeTitle(std::string_view info, const Style& style, int width);
// One line of code, indented by two columns, and of a diff in its colour. Too wide lines continue in further lines,
// which begin with a mark.
std::vector<std::string> CodeLine(std::string_view line, bool is_diff, const Style& style, int width);
// Whether a block of code with this info string is a diff.
bool IsDiff(std::string_view info);

}  // namespace reprise
