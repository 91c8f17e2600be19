#include "base/hidden_characters.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

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

// Joiners, selectors of a glyph, spaces and private use.
constexpr std::array kOfScripts{Range{0xa0, 0xa0},       Range{0x1680, 0x1680},   Range{0x180b, 0x180d},
                                Range{0x180f, 0x180f},   Range{0x2000, 0x200a},   Range{0x200c, 0x200d},
                                Range{0x202f, 0x202f},   Range{0x205f, 0x205f},   Range{0x2800, 0x2800},
                                Range{0x3000, 0x3000},   Range{0xe000, 0xf8ff},   Range{0xfe00, 0xfe0f},
                                Range{0xe0100, 0xe01ef}, Range{0xf0000, 0x10ffff}};

template <std::size_t kSize>
bool IsIn(const std::array<Range, kSize>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const Range& range) { return code >= range.first && code <= range.last; });
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

}  // namespace reprise
