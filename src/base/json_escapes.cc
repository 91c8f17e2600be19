#include "base/json_escapes.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::uint64_t OfEachByte(std::uint64_t byte) { return 0x0101010101010101 * byte; }

// Whether one of eight bytes is less than `limit`, which is at most 128. May say so of bytes that follow such a byte.
constexpr std::uint64_t HasLess(std::uint64_t bytes, std::uint64_t limit) {
  return (bytes - OfEachByte(limit)) & ~bytes & OfEachByte(0x80);
}
constexpr std::uint64_t HasByte(std::uint64_t bytes, std::uint64_t byte) {
  return HasLess(bytes ^ OfEachByte(byte), 1);
}

// Most of what is written is long text, or JSON within JSON, so these work on eight bytes at a time.
constexpr std::size_t kBlock = sizeof(std::uint64_t);

// How many of the block's bytes come before the first one that is escaped.
template <bool kEscapesDelete>
std::size_t PlainBytes(const char* block) {
  if constexpr (std::endian::native != std::endian::little) return 0;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, block, kBlock);
  const std::uint64_t escaped =
      HasLess(bytes, 0x20) | HasByte(bytes, '"') | HasByte(bytes, '\\') | (kEscapesDelete ? HasByte(bytes, 0x7f) : 0);
  return static_cast<std::size_t>(std::countr_zero(escaped)) / 8;
}

template <bool kEscapesDelete>
bool IsEscaped(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code < 0x20 || c == '"' || c == '\\' || (kEscapesDelete && code == 0x7f);
}

// Writes the character's escape, in at most kLongest bytes. Returns their end.
constexpr std::size_t kLongest = 6;
char* WriteEscape(char* to, char c) {
  *to++ = '\\';
  constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
  for (std::size_t i = 0; i < kShort.size(); ++i) {
    if (kShort[i] != c) continue;
    *to = kLetters[i];
    return to + 1;
  }
  const auto code = static_cast<unsigned char>(c);
  for (const char each : {'u', '0', '0', kHexDigits[code >> 4], kHexDigits[code & 15]}) *to++ = each;
  return to;
}

// `out` has room for the rest of the text as it is; an escape makes more.
template <bool kEscapesDelete>
void Append(std::string& out, std::string_view text) {
  std::size_t size = out.size();
  out.resize(size + text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t rest = text.size() - i;
    if (rest >= kBlock) {
      std::memcpy(out.data() + size, text.data() + i, kBlock);
      const std::size_t plain = PlainBytes<kEscapesDelete>(text.data() + i);
      i += plain;
      size += plain;
      if (plain == kBlock) continue;
    }
    const char c = text[i++];
    if (!IsEscaped<kEscapesDelete>(c)) {
      out[size++] = c;
      continue;
    }
    if (out.size() - size < rest + kLongest) out.resize(size + rest + kLongest + rest / 8);
    size = static_cast<std::size_t>(WriteEscape(out.data() + size, c) - out.data());
  }
  out.resize(size);
}

}  // namespace

void AppendEscaped(std::string& out, std::string_view text, EscapesDelete how) {
  how == EscapesDelete::kYes ? Append<true>(out, text) : Append<false>(out, text);
}

}  // namespace reprise
