#include "base/utf8.h"

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The longest prefix of a well-formed character at some byte, and whether it is complete (Unicode 15, table 3-7).
struct Sequence {
  std::size_t length;
  bool complete;
};

Sequence Scan(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t want = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte has a narrower range, which excludes overlong forms, surrogates and code points above
  // U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t n = 1; n < want; ++n) {
    if (at + n >= bytes.size()) return {n, false};
    const unsigned char c = byte(at + n);
    if (n == 1 ? (c < low || c > high) : (c < 0x80 || c > 0xBF)) return {n, false};
  }
  return {want, true};
}

// The index of the first byte from `at` on that is not ASCII.
std::size_t SkipAscii(std::string_view bytes, std::size_t at) {
  while (at + 8 <= bytes.size()) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    if (word & 0x8080808080808080u) break;
    at += 8;
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) ++at;
  return at;
}

}  // namespace

std::string Utf8Of(char32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

bool IsUtf8(std::string_view bytes) {
  for (std::size_t at = SkipAscii(bytes, 0); at < bytes.size(); at = SkipAscii(bytes, at)) {
    const Sequence sequence = Scan(bytes, at);
    if (!sequence.complete) return false;
    at += sequence.length;
  }
  return true;
}

std::string ToValidUtf8(std::string_view bytes) {
  if (IsUtf8(bytes)) return std::string(bytes);
  std::string out;
  out.reserve(bytes.size() + 16);
  for (std::size_t at = 0; at < bytes.size();) {
    const Sequence sequence = Scan(bytes, at);
    out += sequence.complete ? bytes.substr(at, sequence.length) : kReplacement;
    at += sequence.length;
  }
  return out;
}

std::size_t IncompleteUtf8Tail(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto c = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (c < 0x80) return 0;
    if (c < 0xC0) continue;  // a continuation byte: its lead is further back
    const Sequence sequence = Scan(bytes, bytes.size() - back);
    const std::size_t want = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return !sequence.complete && sequence.length == back && back < want && c >= 0xC2 && c <= 0xF4 ? back : 0;
  }
  return 0;
}

std::string_view FromUtf8Start(std::string_view bytes) {
  constexpr std::size_t kMaxContinuation = 3;
  std::size_t skip = 0;
  while (skip < std::min(kMaxContinuation, bytes.size()) && (static_cast<unsigned char>(bytes[skip]) & 0xC0) == 0x80) {
    ++skip;
  }
  return bytes.substr(skip);
}

std::string_view Utf8Prefix(std::string_view text, std::size_t max_characters) {
  std::size_t at = 0;
  for (std::size_t n = 0; n < max_characters && at < text.size(); ++n) at += Scan(text, at).length;
  return text.substr(0, at);
}

std::int64_t CharactersIn(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace reprise
