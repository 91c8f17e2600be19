#pragma once

#include <string>
#include <string_view>

namespace reprise {

// Whether the beginning of a file looks like text (no NUL in its first 8 KiB).
bool LooksLikeText(std::string_view content);

// One line for a model to read: valid UTF-8, control characters shown as '?'.
std::string OneLine(std::string_view text);

// A path for a message: in quotes, on one line, cut if it is very long.
std::string QuotedPath(std::string_view path);

}  // namespace reprise
