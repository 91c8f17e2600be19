#pragma once

#include <string>
#include <string_view>

namespace reprise {

// Text from a model, a tool or a file may try to steer the terminal that shows it: escape sequences, or characters that
// reorder what one reads. These two make all of that visible as <U+001B> and leave the rest alone. Invalid UTF-8
// becomes U+FFFD.

// Line ends become spaces.
std::string VisibleLine(std::string_view text);
// Line ends stay; every line after the first begins with `indent`.
std::string Indented(std::string_view text, std::string_view indent);

// The first `max_characters` characters, with "..." in place of the rest.
std::string Shortened(std::string_view text, std::size_t max_characters);

}  // namespace reprise
