#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/terminal_style.h"

namespace reprise {

// Narrower terminals get lines of this many columns.
inline constexpr int kNarrowestMarkdown = 16;

// A whole piece of Markdown (GitHub's) as lines for a terminal, at most `width` columns wide. HTML is text. Line ends
// of a paragraph stay: who writes for a chat means them. The address of a link follows it. A list begins with
// `first_number` instead of its own if that is given. Nothing in `markdown` steers the terminal (terminal_text.h).
std::vector<std::string> MarkdownLines(std::string_view markdown, const Style& style, int width,
                                       std::optional<unsigned> first_number = std::nullopt);

// The same without understanding it: its lines, wrapped.
std::vector<std::string> PlainLines(std::string_view text, int width);

// What stands above a block of code, mostly its language.
std::vector<std::string> CodeTitle(std::string_view info, const Style& style, int width);
// One line of code, indented by two columns; of a diff in its colour. What is too wide goes on in further lines, which
// begin with a mark.
std::vector<std::string> CodeLine(std::string_view line, bool is_diff, const Style& style, int width);
// Whether the code that is called so is a diff.
bool IsDiff(std::string_view info);

}  // namespace reprise
