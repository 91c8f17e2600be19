#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

// Controls, what Unicode calls default ignorable, separators that look like nothing, marks of the reading direction and
// private use: a person who reads a text does not see them, or sees another text. Line feed, carriage return and tab
// are not among them.
bool IsHidden(std::uint32_t code);
// The same of prose, where the joiners, variants and spaces that scripts and emoji are written with stay.
bool IsHiddenInProse(std::uint32_t code);

// Whether one of them is in `text`. REQUIRES: `text` is UTF-8.
bool HasHidden(std::string_view text);

// The code point of one character. REQUIRES: `character` is one, in UTF-8.
std::uint32_t CodePointOf(std::string_view character);

// "<U+200B>"
std::string SpelledOut(std::uint32_t code);

// `text` on one line for people: a space for each line feed, carriage return and tab, what is hidden
// spelled out, invalid UTF-8 as U+FFFD.
std::string VisibleOnOneLine(std::string_view text);

}  // namespace reprise
