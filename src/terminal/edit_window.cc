#include "terminal/edit_window.h"

#include <algorithm>
#include <cwchar>

#include "base/terminal_text.h"
#include "base/text.h"
#include "terminal/wrapped_text.h"

namespace reprise {
namespace {

constexpr int kTabStop = 8;

// A character of an edited text in this column, and its width.
struct Glyph {
  std::string text;
  int width = 0;
};
Glyph GlyphOf(wchar_t character, int column, int columns) {
  if (character == L'\t') {
    const int width = std::min(kTabStop - column % kTabStop, columns - column);
    return {std::string(static_cast<std::size_t>(width), ' '), width};
  }
  if (character < 0x20 || character == 0x7f) return {{'^', static_cast<char>(character ^ 0x40)}, 2};
  std::string text = Utf8Of(static_cast<char32_t>(character));
  if (const int width = ::wcwidth(character); width >= 0) return {std::move(text), width};
  text = VisibleLine(text);
  const int width = DisplayWidth(text);
  return {std::move(text), width};
}

}  // namespace

EditWindow WindowOf(const TypedText& edited, int columns, int most, std::size_t& first) {
  const std::wstring whole = std::wstring(edited.prompt).append(edited.text);
  const std::size_t cursor = edited.prompt.size() + edited.cursor;
  std::vector<std::size_t> begins{0};  // of the rows, in `whole`
  EditWindow window;
  std::size_t row_of_cursor = 0;
  int column = 0;
  for (std::size_t i = 0; i <= whole.size(); ++i) {
    const bool breaks = i == whole.size() || whole[i] == L'\n';
    int width = breaks ? 0 : GlyphOf(whole[i], column, columns).width;
    if (column > 0 && column + width > columns) {
      begins.push_back(i);
      column = 0;
    }
    if (i == cursor) row_of_cursor = begins.size() - 1, window.column = column;
    if (i == whole.size()) break;
    column += width;
    if (!breaks && column < columns) continue;
    begins.push_back(i + 1);
    column = 0;
  }

  std::size_t from = 0, count = begins.size();
  if (const auto room = static_cast<std::size_t>(most); count > room) {
    count = room - 2;
    from = std::clamp(first, row_of_cursor + 1 - std::min(row_of_cursor + 1, count), row_of_cursor);
    // A line that counts one row would take that row's place.
    if (from <= 1) from = 0, count = room - 1;
    if (from + count + 1 >= begins.size()) count = room - 1, from = begins.size() - count;
  }
  first = from;
  const auto hidden = [&](const char* arrow, std::size_t rows) {
    if (rows > 0) window.rows.push_back(CutToWidth(arrow + Counted(rows, "more row"), columns));
  };
  hidden("↑ ", from);
  window.row = static_cast<int>(row_of_cursor - from + window.rows.size());
  for (std::size_t row = from; row < from + count; ++row) {
    const std::size_t end = row + 1 < begins.size() ? begins[row + 1] : whole.size();
    std::string& text = window.rows.emplace_back();
    for (std::size_t i = begins[row], at = 0; i < end && whole[i] != L'\n'; ++i) {
      const Glyph glyph = GlyphOf(whole[i], static_cast<int>(at), columns);
      text += glyph.text;
      at += static_cast<std::size_t>(glyph.width);
    }
  }
  hidden("↓ ", begins.size() - from - count);
  return window;
}

}  // namespace reprise
