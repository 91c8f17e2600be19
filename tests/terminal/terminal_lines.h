#pragma once

#include <algorithm>
#include <clocale>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "terminal/terminal_style.h"
#include "terminal/wrapped_text.h"

namespace reprise::test {

// Widths of characters are those of a UTF-8 locale.
inline void UseUtf8Locale() { std::setlocale(LC_CTYPE, "C.UTF-8"); }

inline std::string WithoutPaint(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    const std::size_t paint = PaintSequence(line);
    if (paint == 0) out += line[0];
    line.remove_prefix(std::max<std::size_t>(paint, 1));
  }
  return out;
}

inline std::vector<std::string> WithoutPaint(std::vector<std::string> lines) {
  for (std::string& line : lines) line = WithoutPaint(line);
  return lines;
}

inline std::string Joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + '\n';
  return out;
}

// Why `line` must not go to a terminal of `width` columns; nothing if it may.
inline std::string FaultOf(std::string_view line, int width) {
  if (!IsUtf8(line)) return "not UTF-8";
  if (DisplayWidth(line) > width) return "wider than " + std::to_string(width);
  bool painted = false;
  while (!line.empty()) {
    if (const std::size_t paint = PaintSequence(line); paint > 0) {
      const std::string_view sequence = line.substr(0, paint);
      painted = sequence != kPaintReset;
      constexpr std::string_view kKnown[] = {"\x1b[0m",  "\x1b[1m",    "\x1b[2m",  "\x1b[3m",  "\x1b[4m",
                                             "\x1b[35m", "\x1b[32m",   "\x1b[31m", "\x1b[33m", "\x1b[1;31m",
                                             "\x1b[36m", "\x1b[4;36m", "\x1b[9m"};
      if (std::find(std::begin(kKnown), std::end(kKnown), sequence) == std::end(kKnown)) return "unknown sequence";
      line.remove_prefix(paint);
      continue;
    }
    const std::string_view character = Utf8Prefix(line, 1);
    line.remove_prefix(character.size());
    const std::uint32_t code = CodePointOf(character);
    const bool steers = code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x2028 && code <= 0x202e) ||
                        (code >= 0x2066 && code <= 0x2069) || code == 0x200e || code == 0x200f;
    if (steers) return "holds " + SpelledOut(code);
  }
  return painted ? "painted beyond its end" : "";
}

inline std::string FaultOf(const std::vector<std::string>& lines, int width) {
  for (const std::string& line : lines) {
    if (const std::string fault = FaultOf(line, width); !fault.empty()) return fault + ": " + line;
  }
  return "";
}

// Bytes of which many are control characters, marks of Markdown, parts of UTF-8 characters or of escape sequences.
inline std::string RandomBytes(std::mt19937& random, std::size_t size) {
  static const std::vector<std::string> kPieces{"\x1b[31m",    "\x1b]0;t\x07",
                                                "\r",          "\r\n",
                                                "\n",          "\n\n",
                                                "\t",          std::string(1, '\0'),
                                                "\xc2\x9b",    "\xe2\x80\xae",
                                                "\xff",        "\xe6\x97",
                                                "日本",        "👩‍👩‍👧",
                                                "e\u0301",     "a",
                                                "word",        " ",
                                                "    ",        "`",
                                                "```",         "~~~",
                                                "*",           "**",
                                                "_",           "#",
                                                "# ",          "> ",
                                                "- ",          "1. ",
                                                "|",           "|-|-|\n",
                                                "[",           "](",
                                                ")",           "<",
                                                ">",           "&#27;",
                                                "&#x202e;",    "&#10;",
                                                "&amp;",       "\\",
                                                "!",           "---\n",
                                                "===\n",       "[x]: y",
                                                "http://a.b/c"};
  std::string out;
  while (out.size() < size) {
    if (random() % 8 == 0) {
      out += static_cast<char>(random() % 256);
    } else {
      out += kPieces[random() % kPieces.size()];
    }
  }
  return out;
}

}  // namespace reprise::test
