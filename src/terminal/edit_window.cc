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

constexpr wchar_t kJoiner = 0x200d;  // ZERO WIDTH JOINER

bool IsWithin(wchar_t character, wchar_t first, wchar_t last) { return character >= first && character <= last; }

// Whether a character belongs to the one before it: accents, variation selectors, joiners, skin tones and tags.
// Invisible marks of direction and the like stand for themselves.
bool Extends(wchar_t character) {
  if (character < 0x300) return false;
  const bool is_mark = character == 0x200b || IsWithin(character, 0x200e, 0x200f) ||
                       IsWithin(character, 0x2028, 0x202e) || IsWithin(character, 0x2060, 0x206f) ||
                       character == 0xfeff;
  if (is_mark) return false;
  return ::wcwidth(character) == 0 || IsWithin(character, 0x1f3fb, 0x1f3ff) || IsWithin(character, 0xe0020, 0xe007f);
}
bool IsPicture(wchar_t character) {
  return IsWithin(character, 0x2190, 0x2bff) || IsWithin(character, 0x1f000, 0x1ffff);
}
bool IsOfFlag(wchar_t character) { return IsWithin(character, 0x1f1e6, 0x1f1ff); }

}  // namespace

std::size_t ClusterFrom(std::wstring_view text, std::size_t at) {
  if (text[at] < 0x20) return 1;
  std::size_t end = at + 1;
  if (IsOfFlag(text[at]) && end < text.size() && IsOfFlag(text[end])) ++end;
  while (end < text.size()) {
    const bool is_joined = text[end - 1] == kJoiner && IsPicture(text[end]);
    if (!is_joined && !Extends(text[end])) break;
    ++end;
  }
  return end - at;
}

std::size_t ClusterBefore(std::wstring_view text, std::size_t at) {
  std::size_t begin = text.substr(0, at - 1).rfind(L'\n') + 1;  // npos + 1 is 0
  for (std::size_t next = begin; next < at; next += ClusterFrom(text, next)) begin = next;
  return at - begin;
}

std::wstring TextOfPaste(std::wstring_view pasted) {
  std::wstring text;
  for (std::size_t i = 0; i < pasted.size(); ++i) {
    const wchar_t next = i + 1 < pasted.size() ? pasted[i + 1] : L'\0';
    const bool is_break = pasted[i] == L'\r' || pasted[i] == L'\n';
    // A terminal in this mode swaps the two; in either order they are one line end.
    if (is_break && next != pasted[i] && (next == L'\r' || next == L'\n')) ++i;
    if (is_break) {
      text += L'\n';
    } else if (pasted[i] != L'\0') {
      text += pasted[i];
    }
  }
  return text;
}

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
