#include "cli/terminal_text.h"

#include <cstdint>
#include <cstdio>

#include "base/utf8.h"

namespace reprise {
namespace {

struct Character {
  std::uint32_t code;
  std::size_t length;
};

// REQUIRES: `text` is UTF-8 and not empty.
Character FirstCharacter(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  if (byte(0) < 0xe0) return {(byte(0) & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (byte(0) < 0xf0) return {(byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

// Controls (C0 without tab, DEL, C1), line and paragraph separators, and the marks that turn the reading direction.
bool MustBeShown(std::uint32_t code) {
  if (code == '\t') return false;
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || (code >= 0x200e && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

std::string Visible(std::string_view text, std::string_view line_end) {
  const std::string valid = ToValidUtf8(text);
  std::string out;
  for (std::string_view rest = valid; !rest.empty();) {
    const Character next = FirstCharacter(rest);
    if (rest.starts_with("\r\n")) {
      rest.remove_prefix(1);  // the line end as Windows writes it
      continue;
    }
    if (next.code == '\n') {
      out += line_end;
    } else if (MustBeShown(next.code)) {
      char name[16];
      std::snprintf(name, sizeof name, "<U+%04X>", next.code);
      out += name;
    } else {
      out += rest.substr(0, next.length);
    }
    rest.remove_prefix(next.length);
  }
  return out;
}

}  // namespace

std::string VisibleLine(std::string_view text) { return Visible(text, " "); }

std::string Indented(std::string_view text, std::string_view indent) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return Visible(text, "\n" + std::string(indent));
}

std::string Shortened(std::string_view text, std::size_t max_characters) {
  const std::string valid = ToValidUtf8(text);
  const std::string_view prefix = Utf8Prefix(valid, max_characters);
  return prefix.size() == valid.size() ? valid : std::string(prefix) + "...";
}

}  // namespace reprise
