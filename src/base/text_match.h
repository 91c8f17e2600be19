#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Finds text in a file as a model remembers it. Time and memory grow linearly with the texts. Any bytes.

// How a place may differ from the wanted text, besides the differences before it.
enum class Likeness {
  kExact,
  kBlanks,       // in blanks at line ends, carriage returns, and the last line end of the file
  kTypography,   // in quotes, dashes and spaces that look alike
  kIndentation,  // in the indentation of whole lines, all in the same way
};

// Bytes `begin` to `end` of a text.
struct TextPlace {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextPlace&) const = default;
};

inline constexpr std::size_t kMostPlaces = 100;

struct TextMatches {
  Likeness likeness = Likeness::kExact;
  std::vector<TextPlace> places;  // in order, at most kMostPlaces; they may overlap
};

// The places of `wanted` in `text` from byte `from` on (the start of a line), with as little difference as possible.
// `whole_lines`: only places that begin and end with lines. REQUIRES: `wanted` is not empty.
TextMatches FindText(std::string_view text, std::string_view wanted, bool whole_lines = false, std::size_t from = 0);

// What to put in place of which bytes.
struct Replacement {
  TextPlace place;
  std::string text;
};

// Replaces `wanted`, which FindText found at `place`, by `replacement`. Lines that both have stay as they are in
// `text`; new lines get its line ends and, with kIndentation, its indentation: nullopt if it does not say which.
std::optional<Replacement> ReplacementAt(std::string_view text, const TextPlace& place, Likeness likeness,
                                         std::string_view wanted, std::string_view replacement);

// "blanks at line ends, indentation": how the place differs; for people and models.
std::string DifferenceAt(std::string_view text, const TextPlace& place, std::string_view wanted);

// "line 3", "lines 3 to 5"
std::string LinesAt(std::string_view text, const TextPlace& place);

// Whether a message may quote the file.
enum class Quoting { kAllowed, kForbidden };

// For a text that FindText does not find: where the nearest place is and how it differs, in sentences. `name` is the
// wanted text's. Valid UTF-8 of a few KiB at most.
std::string NearestPlace(std::string_view text, std::string_view wanted, std::string_view name, Quoting quoting);

}  // namespace reprise
