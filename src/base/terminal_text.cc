#include "base/terminal_text.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"

namespace reprise {

namespace {

struct Range {
  std::uint32_t first, last;
};
constexpr std::array kHidden{
    Range{0x00, 0x08},       Range{0x0b, 0x0c},       Range{0x0e, 0x1f},       Range{0x7f, 0xa0},
    Range{0xad, 0xad},       Range{0x34f, 0x34f},     Range{0x61c, 0x61c},     Range{0x115f, 0x1160},
    Range{0x1680, 0x1680},   Range{0x17b4, 0x17b5},   Range{0x180b, 0x180f},   Range{0x2000, 0x200f},
    Range{0x2028, 0x202f},   Range{0x205f, 0x206f},   Range{0x2800, 0x2800},   Range{0x3000, 0x3000},
    Range{0x3164, 0x3164},   Range{0xe000, 0xf8ff},   Range{0xfe00, 0xfe0f},   Range{0xfeff, 0xfeff},
    Range{0xffa0, 0xffa0},   Range{0xfff0, 0xfffc},   Range{0x70f, 0x70f},     Range{0x2d7f, 0x2d7f},
    Range{0xfdd0, 0xfdef},   Range{0x110bd, 0x110bd}, Range{0x110cd, 0x110cd}, Range{0x13430, 0x1345f},
    Range{0x16fe4, 0x16fe4}, Range{0x1bca0, 0x1bca3}, Range{0x1d159, 0x1d159}, Range{0x1d173, 0x1d17a},
    Range{0xe0000, 0xe0fff}, Range{0xf0000, 0x10ffff}};

// Joiners, glyph selectors, spaces and private use.
constexpr std::array kOfScripts{Range{0xa0, 0xa0},       Range{0x1680, 0x1680},   Range{0x180b, 0x180d},
                                Range{0x180f, 0x180f},   Range{0x2000, 0x200a},   Range{0x200c, 0x200d},
                                Range{0x202f, 0x202f},   Range{0x205f, 0x205f},   Range{0x2800, 0x2800},
                                Range{0x3000, 0x3000},   Range{0xe000, 0xf8ff},   Range{0xfe00, 0xfe0f},
                                Range{0xe0100, 0xe01ef}, Range{0xf0000, 0x10ffff}};

template <std::size_t kSize>
bool IsIn(const std::array<Range, kSize>& ranges, std::uint32_t code) {
  return std::ranges::any_of(ranges, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

bool IsHidden(std::uint32_t code) { return IsIn(kHidden, code) || (code & 0xfffe) == 0xfffe; }

bool IsHiddenInProse(std::uint32_t code) { return IsHidden(code) && !IsIn(kOfScripts, code); }

bool HasHidden(std::string_view text) {
  while (!text.empty()) {
    const std::string_view next = Utf8Prefix(text, 1);
    if (IsHidden(CodePointOf(next))) return true;
    text.remove_prefix(next.size());
  }
  return false;
}

std::uint32_t CodePointOf(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  static constexpr std::array<std::uint32_t, 5> kMask{0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = byte(0) & kMask[std::min<std::size_t>(character.size(), 4)];
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

std::string SpelledOut(std::uint32_t code) {
  std::string digits;
  for (; code != 0 || digits.size() < 4; code >>= 4) digits.insert(digits.begin(), "0123456789ABCDEF"[code & 0xf]);
  return "<U+" + digits + ">";
}

std::string VisibleOnOneLine(std::string_view text) {
  const std::string valid = ToValidUtf8(text);
  std::string out;
  for (std::string_view rest = valid; !rest.empty();) {
    const std::string_view next = Utf8Prefix(rest, 1);
    rest.remove_prefix(next.size());
    const std::uint32_t code = CodePointOf(next);
    if (code == '\n' || code == '\r' || code == '\t') {
      out += ' ';
    } else if (IsHidden(code)) {
      out += SpelledOut(code);
    } else {
      out += next;
    }
  }
  return out;
}

namespace {

enum class Shown { kAllHidden, kProse };

std::string Visible(std::string_view text, std::string_view line_end, Shown shown) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f; };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  const std::string valid = ToValidUtf8(text);
  std::string out;
  out.reserve(valid.size());
  for (std::string_view rest = valid; !rest.empty();) {
    // The fast path for most text.
    const auto plain_end = std::ranges::find_if_not(rest, is_plain);
    out.append(rest.begin(), plain_end);
    rest.remove_prefix(static_cast<std::size_t>(plain_end - rest.begin()));
    if (rest.empty()) break;
    if (rest.starts_with("\r\n")) {
      rest.remove_prefix(1);  // a Windows line end
      continue;
    }
    const std::string_view next = Utf8Prefix(rest, 1);
    rest.remove_prefix(next.size());
    const std::uint32_t code = CodePointOf(next);
    if (code == '\n') {
      out += line_end;
    } else if (code == '\r' || (shown == Shown::kProse ? IsHiddenInProse(code) : IsHidden(code))) {
      out += SpelledOut(code);
    } else {
      out += next;
    }
  }
  return out;
}

}  // namespace

std::string VisibleLine(std::string_view text) { return Visible(text, " ", Shown::kAllHidden); }

std::string VisibleText(std::string_view text, std::string_view indent) {
  return Visible(WithBlankLinesCounted(text), "\n" + std::string(indent), Shown::kAllHidden);
}

std::string WithBlankLinesCounted(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t blank_end = text.find_first_not_of(" \t\r\n");
    const std::size_t last_end = blank_end == 0 ? std::string_view::npos : text.substr(0, blank_end).rfind('\n');
    const auto blank = text.substr(0, last_end == std::string_view::npos ? 0 : last_end + 1);
    const auto count = static_cast<std::size_t>(std::ranges::count(blank, '\n'));
    if (count > kMostBlankLines) {
      out += "<" + Counted(count, "blank line") + ">\n";
    } else {
      out += blank;
    }
    text.remove_prefix(blank.size());
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    out += line;
    text.remove_prefix(line.size());
  }
  return out;
}

std::string Indented(std::string_view text, std::string_view indent) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return Visible(text, "\n" + std::string(indent), Shown::kProse);
}

std::string StreamedText::Add(std::string_view delta) {
  held_ += delta;
  const bool waits = held_.ends_with('\r');  // its line feed may follow
  std::string shown = Visible(std::string_view(held_).substr(0, held_.size() - (waits ? 1 : 0)), "\n", Shown::kProse);
  held_ = waits ? "\r" : "";
  return shown;
}

std::string StreamedText::End() {
  std::string shown = Visible(held_, "\n", Shown::kProse);
  held_.clear();
  return shown;
}

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string Shortened(std::string_view text, std::size_t max_characters) {
  const std::string valid = ToValidUtf8(text);
  const std::string_view prefix = Utf8Prefix(valid, max_characters);
  return prefix.size() == valid.size() ? valid : std::string(prefix) + "...";
}

std::size_t ControlSequenceLength(std::string_view text) {
  if (text.size() < 3) return 0;
  const auto is_in = [](char c, char first, char last) { return c >= first && c <= last; };
  if (text[1] == '(' || text[1] == ')') return is_in(text[2], '0', '~') ? 3 : 0;
  if (text[1] != '[') return 0;
  std::size_t end = 2;
  while (end < text.size() && is_in(text[end], '0', '?')) ++end;
  while (end < text.size() && is_in(text[end], ' ', '/')) ++end;
  return end < text.size() && is_in(text[end], '@', '~') ? end + 1 : 0;
}

std::string Counted(std::uint64_t number, std::string_view thing) {
  return Grouped(number) + " " + std::string(thing) + (number == 1 ? "" : "s");
}

std::string Grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

namespace {

void AppendUnit(std::string& out, std::uint32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHexDigits[unit >> shift & 0xf];
}

}  // namespace

std::string EscapeHidden(std::string_view json) {
  const std::string text = WithoutGaps(json);
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view next = Utf8Prefix(rest, 1);
    rest.remove_prefix(next.size());
    const std::uint32_t code = CodePointOf(next);
    if (!IsHidden(code)) {
      out += next;
    } else if (code < 0x10000) {
      AppendUnit(out, code);
    } else {
      AppendUnit(out, 0xd800 + ((code - 0x10000) >> 10));
      AppendUnit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
    }
  }
  return out;
}

}  // namespace reprise
