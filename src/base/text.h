#pragma once

#include <charconv>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Of ASCII, whatever the locale is: names of headers, parameters and commands.
inline char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerCase(c);
  return lower;
}

inline bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsAsciiLetter(char c) { return LowerCase(c) >= 'a' && LowerCase(c) <= 'z'; }
inline bool IsAsciiAlnum(char c) { return IsAsciiLetter(c) || IsAsciiDigit(c); }
// Of names of variables and the like.
inline bool IsNameCharacter(char c) { return IsAsciiAlnum(c) || c == '_'; }

// Of the names of tools that every provider takes.
inline bool IsToolNameCharacter(char c) { return IsNameCharacter(c) || c == '-'; }

// Without white space, or other characters, at its beginning and its end.
std::string_view Trimmed(std::string_view text, std::string_view blanks = " \t\r\n");
// What JSON and HTTP take for white space.
inline bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
// Whether there is nothing but white space.
inline bool IsBlank(std::string_view text) { return Trimmed(text).empty(); }

inline bool HasControlCharacter(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

// The decimal number that the whole of `text` is; nullopt: it is none, or does not fit the type.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// The characters before the first blank, which are taken off `text` together with it.
std::string_view TakeWord(std::string_view& text);

// -1: `c` is no hexadecimal digit.
inline int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = LowerCase(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Two lower-case digits for each byte.
inline constexpr std::string_view kHexDigits = "0123456789abcdef";
void AppendHex(std::string& out, std::string_view bytes);
std::string EncodeHex(std::span<const unsigned char> bytes);

// Each byte but letters, digits and those in `plain` as %XX (RFC 3986, section 2.1), or with another sign than %.
std::string PercentEncoded(std::string_view text, std::string_view plain = "-._~", char sign = '%');
// nullopt if a % is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecoded(std::string_view text, bool plus_is_space = false);

// base64url without padding (RFC 4648, section 5).
void AppendBase64Url(std::string& out, std::string_view bytes);
std::string EncodeBase64Url(std::string_view bytes);

// base64 with padding (RFC 4648, section 4), as providers take it.
void AppendBase64(std::string& out, std::string_view bytes);

// nullopt unless `text` is exactly what EncodeBase64Url prints for some bytes: no padding, no white space, no stray
// bits in the last character.
std::optional<std::string> DecodeBase64Url(std::string_view text);

// The one of `known` that somebody who typed `word` is likely to have meant; nullopt if none is near.
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> known);

// ", did you mean X?" or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

// What stands in place of that which nobody is to see.
inline constexpr std::string_view kRedacted = "[redacted]";

// Takes secrets out of texts: each occurrence becomes kRedacted. Immutable, thread-safe.
class Redactor {
 public:
  // Secrets of less than eight characters are left alone: they would be found where they are not meant.
  explicit Redactor(std::vector<std::string> secrets);

  bool empty() const { return secrets_.empty(); }
  std::string Redacted(std::string text) const;
  // For a text that comes in pieces: what can be shown of it so far. What may be the beginning of a secret is held
  // back. Must not outlive this.
  std::function<std::string(std::string_view)> ForPieces() const;

 private:
  std::vector<std::string> secrets_;  // the longest first
};

}  // namespace reprise
