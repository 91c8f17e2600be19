#include "document/encoded_text.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace reprise::document {
namespace {

// 0x80 to 0x9f of Windows-1252; the rest is as in Unicode. 0: no character.
constexpr std::array<std::uint16_t, 32> kWindows1252 = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                                        0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017d, 0,
                                                        0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                                        0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};
constexpr char32_t kReplacement = 0xfffd;

std::string ReadAll() {
  std::string all;
  std::array<char, 64 * 1024> buffer{};
  while (all.size() < 4 * Output::kMaxBytes) {
    const ssize_t got = ::read(0, buffer.data(), buffer.size());
    if (got <= 0) break;
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return all;
}

void AddUtf16(std::string_view text, bool high_first, Output& out) {
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]), second = static_cast<unsigned char>(text[at + 1]);
    return static_cast<char32_t>(high_first ? first << 8 | second : second << 8 | first);
  };
  for (std::size_t i = 0; i + 1 < text.size() && !out.full(); i += 2) {
    char32_t code = unit(i);
    if (code >= 0xd800 && code < 0xe000) {
      const char32_t low = code < 0xdc00 && i + 3 < text.size() ? unit(i + 2) : 0;
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        i += 2;
      } else {
        code = kReplacement;
      }
    }
    if (code != '\r') out.Add(Utf8Of(code == 0 ? kReplacement : code));
  }
  if (text.size() % 2 != 0) out.Add(Utf8Of(kReplacement));
}

void AddWindows1252(std::string_view text, Output& out) {
  for (const char c : text) {
    if (out.full()) return;
    char32_t code = static_cast<unsigned char>(c);
    if (code >= 0x80 && code < 0xa0) code = kWindows1252[code - 0x80] == 0 ? kReplacement : kWindows1252[code - 0x80];
    if (code != '\r') out.Add(Utf8Of(code == 0 ? kReplacement : code));
  }
}

}  // namespace

void ReadEncodedText(Output& out) {
  const std::string all = ReadAll();
  const std::string_view text = all;
  if (text.starts_with("\xff\xfe")) return AddUtf16(text.substr(2), false, out);
  if (text.starts_with("\xfe\xff")) return AddUtf16(text.substr(2), true, out);
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    return AddUtf16(text, zero % 2 == 0, out);
  AddWindows1252(text, out);
}

}  // namespace reprise::document
