#include "base/base64url.h"

#include <array>
#include <cstdint>

namespace reprise {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t kInvalid = 0xff;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kInvalid);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

std::uint8_t Value(char c) { return kValues[static_cast<unsigned char>(c)]; }

}  // namespace

void AppendBase64Url(std::string& out, std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  const std::size_t tail = bytes.size() % 3;
  const std::size_t whole = bytes.size() - tail;
  std::size_t at = out.size();
  out.resize(at + whole / 3 * 4 + (tail == 0 ? 0 : tail + 1));
  char* to = out.data() + at;
  for (std::size_t i = 0; i < whole; i += 3) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *to++ = kAlphabet[group >> 18];
    *to++ = kAlphabet[group >> 12 & 63];
    *to++ = kAlphabet[group >> 6 & 63];
    *to++ = kAlphabet[group & 63];
  }
  if (tail == 0) return;
  const std::uint32_t group = byte(whole) << 16 | (tail == 2 ? byte(whole + 1) << 8 : 0);
  *to++ = kAlphabet[group >> 18];
  *to++ = kAlphabet[group >> 12 & 63];
  if (tail == 2) *to = kAlphabet[group >> 6 & 63];
}

void AppendBase64(std::string& out, std::string_view bytes) {
  const std::size_t begin = out.size();
  AppendBase64Url(out, bytes);
  for (std::size_t i = begin; i < out.size(); ++i) {
    if (out[i] == '-') out[i] = '+';
    if (out[i] == '_') out[i] = '/';
  }
  out.append((4 - (out.size() - begin) % 4) % 4, '=');
}

std::string EncodeBase64Url(std::string_view bytes) {
  std::string text;
  AppendBase64Url(text, bytes);
  return text;
}

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  const std::size_t tail = text.size() % 4;
  if (tail == 1) return std::nullopt;
  const std::size_t whole = text.size() - tail;
  std::string bytes(whole / 4 * 3 + (tail == 0 ? 0 : tail - 1), '\0');
  char* to = bytes.data();
  std::uint8_t seen = 0;  // all values or-ed together: the two top bits tell whether one was invalid
  for (std::size_t i = 0; i < whole; i += 4) {
    const std::uint8_t a = Value(text[i]), b = Value(text[i + 1]), c = Value(text[i + 2]), d = Value(text[i + 3]);
    seen |= static_cast<std::uint8_t>(a | b | c | d);
    *to++ = static_cast<char>(a << 2 | b >> 4);
    *to++ = static_cast<char>(b << 4 | c >> 2);
    *to++ = static_cast<char>(c << 6 | d);
  }
  if (tail != 0) {
    const std::uint8_t a = Value(text[whole]), b = Value(text[whole + 1]);
    const std::uint8_t c = tail == 3 ? Value(text[whole + 2]) : 0;
    seen |= static_cast<std::uint8_t>(a | b | c);
    if ((tail == 2 ? b & 15 : c & 3) != 0) return std::nullopt;
    *to++ = static_cast<char>(a << 2 | b >> 4);
    if (tail == 3) *to = static_cast<char>(b << 4 | c >> 2);
  }
  if (seen >= 64) return std::nullopt;
  return bytes;
}

}  // namespace reprise
