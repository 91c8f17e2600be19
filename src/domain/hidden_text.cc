#include "domain/hidden_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "base/utf8.h"

namespace reprise {
namespace {

struct Range {
  std::uint32_t first, last;
};
// Controls; what Unicode calls default ignorable; separators that look like nothing; marks of the reading direction;
// private use.
constexpr std::array kHidden{
    Range{0x00, 0x08},       Range{0x0b, 0x0c},       Range{0x0e, 0x1f},       Range{0x7f, 0xa0},
    Range{0xad, 0xad},       Range{0x34f, 0x34f},     Range{0x61c, 0x61c},     Range{0x115f, 0x1160},
    Range{0x1680, 0x1680},   Range{0x17b4, 0x17b5},   Range{0x180b, 0x180f},   Range{0x2000, 0x200f},
    Range{0x2028, 0x202f},   Range{0x205f, 0x206f},   Range{0x2800, 0x2800},   Range{0x3000, 0x3000},
    Range{0x3164, 0x3164},   Range{0xe000, 0xf8ff},   Range{0xfe00, 0xfe0f},   Range{0xfeff, 0xfeff},
    Range{0xffa0, 0xffa0},   Range{0xfff0, 0xfffb},   Range{0x1bca0, 0x1bca3}, Range{0x1d173, 0x1d17a},
    Range{0xe0000, 0xe0fff}, Range{0xf0000, 0x10ffff}};

bool IsHidden(std::uint32_t code) {
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [code](const Range& range) { return code >= range.first && code <= range.last; });
}

std::uint32_t CodeOf(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  static constexpr std::array<std::uint32_t, 5> kMask{0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = byte(0) & kMask[std::min<std::size_t>(character.size(), 4)];
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

void AppendUnit(std::string& out, std::uint32_t unit) {
  char escape[8];
  std::snprintf(escape, sizeof escape, "\\u%04x", unit);
  out += escape;
}

}  // namespace

std::string EscapeHidden(std::string_view json) {
  std::string out;
  for (std::string_view rest = json; !rest.empty();) {
    const std::string_view next = Utf8Prefix(rest, 1);
    rest.remove_prefix(next.size());
    const std::uint32_t code = CodeOf(next);
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
