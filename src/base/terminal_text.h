#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// Text from a model, a tool or a file may try to steer the terminal that shows it, or the person who reads it: escape
// sequences, characters that reorder what one reads or that cannot be seen. These make all of that visible as <U+001B>
// and leave the rest alone. Invalid UTF-8 becomes U+FFFD.

// For what a person decides on, and for lists: everything hidden is spelled out. Line ends
// become spaces.
std::string VisibleLine(std::string_view text);
// The same; line ends stay but for those of many blank lines (WithBlankLinesCounted), and every line after the first
// begins with `indent`.
std::string VisibleText(std::string_view text, std::string_view indent);

// Of more than three blank lines one after the other their number: what stands behind them is not pushed away.
std::string WithBlankLinesCounted(std::string_view text);

// For prose: joiners and spaces of its script stay. Line ends stay but for those at the end; every line after the first
// begins with `indent`.
std::string Indented(std::string_view text, std::string_view indent);

// Prose that comes in pieces, with all of its line ends.
class StreamedText {
 public:
  // What is to be shown now.
  std::string Add(std::string_view delta);
  // What was held back.
  std::string End();

 private:
  std::string held_;  // a carriage return whose line feed may come with the next piece
};

// How long the sequence is that `text`, which begins with an escape, begins with: a control sequence, or one that
// chooses a character set. 0: it is another one, or not whole.
std::size_t ControlSequenceLength(std::string_view text);

// The lines of a text, without their ends. An end at the end of the text begins no further line.
std::vector<std::string> LinesOf(std::string_view text);

// With spaces behind it up to `width` bytes.
std::string Padded(std::string text, std::size_t width);

// The first `max_characters` characters, with "..." in place of the rest.
std::string Shortened(std::string_view text, std::size_t max_characters);

// "1 line", "1,234 lines"
std::string Counted(std::uint64_t number, std::string_view thing);
// "1,234"
std::string Grouped(std::uint64_t number);

// Strict JSON text with every character that cannot be seen, or that turns the reading direction, as its \uXXXX escape,
// and without gaps between its tokens (WithoutGaps): still the same JSON value. Other line ends and tabs stay.
// REQUIRES: `json` is UTF-8.
std::string EscapeHidden(std::string_view json);

}  // namespace reprise
