#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// The rows of a terminal that show an edited text, and the cursor's place in them.
struct EditWindow {
  std::vector<std::string> rows;
  int row = 0, column = 0;
  bool operator==(const EditWindow&) const = default;
};

struct TypedText {
  std::wstring_view prompt, text;
  std::size_t cursor = 0;  // in `text`
};
// The rows of prompt and text. Control characters are shown as ^A, tabs as spaces up to the next multiple of eight, and
// a row that is full is followed by another one. If there are more than `most` rows, those around the cursor, between
// lines that count the others; `first`, the first of them, is kept for the next call. REQUIRES: columns >= 2, most
// >= 3.
EditWindow WindowOf(const TypedText& edited, int columns, int most, std::size_t& first);

// The length of the grapheme cluster that begins at `at`, and of the one that ends there: what a person takes for one
// character, such as a letter with its accents, a flag or a family. REQUIRES: there is one.
std::size_t ClusterFrom(std::wstring_view text, std::size_t at);
std::size_t ClusterBefore(std::wstring_view text, std::size_t at);

// The text of a paste: every line end of a terminal as a line feed, and no NUL.
std::wstring TextOfPaste(std::wstring_view pasted);

}  // namespace reprise
