#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// How many consecutive blank lines are shown; more of them become their number.
inline constexpr std::size_t kMostBlankLines = 3;

// Characters that a reader does not see, or that change what a reader sees: controls, Unicode's default ignorables,
// invisible separators, direction marks and private use. Not line feed, carriage return and tab.
bool IsHidden(std::uint32_t code);
// The same for prose, without the joiners, variation selectors and spaces that scripts and emoji need.
bool IsHiddenInProse(std::uint32_t code);

// Whether `text` holds a hidden character. REQUIRES: `text` is UTF-8.
bool HasHidden(std::string_view text);

// The code point of one character. REQUIRES: `character` is one, in UTF-8.
std::uint32_t CodePointOf(std::string_view character);

// "<U+200B>"
std::string SpelledOut(std::uint32_t code);

// `text` on one line for people: each line feed, carriage return and tab becomes a space, hidden characters are spelled
// out, invalid UTF-8 becomes U+FFFD.
std::string VisibleOnOneLine(std::string_view text);

// Text from a model, a tool or a file may try to steer the terminal or deceive the reader with escape sequences and
// with characters that reorder text or are invisible. These functions spell those out as <U+001B> and leave the rest
// alone. Invalid UTF-8 becomes U+FFFD.

// For text that a person decides on, and for lists: spells out everything hidden. Line ends become spaces.
std::string VisibleLine(std::string_view text);
// The same with line ends, except in long runs of blank lines (WithBlankLinesCounted). Every line after the first
// begins with `indent`.
std::string VisibleText(std::string_view text, std::string_view indent);

// Replaces more than three consecutive blank lines by their number, so that the text after them stays in sight.
std::string WithBlankLinesCounted(std::string_view text);

// For prose: the joiners and spaces of its script stay. Trailing line ends go; every line after the first begins with
// `indent`.
std::string Indented(std::string_view text, std::string_view indent);

// Prose that arrives in pieces; keeps all line ends.
class StreamedText {
 public:
  // The text to show now.
  std::string Add(std::string_view delta);
  // The text held back.
  std::string End();

 private:
  std::string held_;  // a carriage return whose line feed may come with the next piece
};

// The length of the sequence at the start of `text`, which begins with an escape: a control sequence or the choice of a
// character set. 0 if it is another sequence or incomplete.
std::size_t ControlSequenceLength(std::string_view text);

// The lines of a text, without their ends. A final line end does not begin another line.
std::vector<std::string> LinesOf(std::string_view text);

// Pads `text` with spaces to `width` bytes.
std::string Padded(std::string text, std::size_t width);

// The first `max_characters` characters, with "..." in place of the rest.
std::string Shortened(std::string_view text, std::size_t max_characters);

// "1 line", "1,234 lines"
std::string Counted(std::uint64_t number, std::string_view thing);
// "1,234"
std::string Grouped(std::uint64_t number);

// Strict JSON text of the same value, with invisible and direction characters as \uXXXX escapes and without wide gaps
// between tokens (WithoutGaps). Other line ends and tabs stay. REQUIRES: `json` is UTF-8.
std::string EscapeHidden(std::string_view json);

}  // namespace reprise
