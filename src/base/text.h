#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// ASCII only, in any locale: for names of headers, parameters and commands.
inline char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerCase(c);
  return lower;
}

inline bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsAsciiLetter(char c) { return LowerCase(c) >= 'a' && LowerCase(c) <= 'z'; }
inline bool IsAsciiAlnum(char c) { return IsAsciiLetter(c) || IsAsciiDigit(c); }
// A character of identifiers.
inline bool IsNameCharacter(char c) { return IsAsciiAlnum(c) || c == '_'; }

// A character of tool names that every provider accepts.
inline bool IsToolNameCharacter(char c) { return IsNameCharacter(c) || c == '-'; }

// The text without the `blanks` at both ends.
std::string_view Trimmed(std::string_view text, std::string_view blanks = " \t\r\n");
// White space in JSON and HTTP.
inline bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
inline bool IsBlank(std::string_view text) { return Trimmed(text).empty(); }

inline bool HasControlCharacter(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

// Parses all of `text` as a decimal number; nullopt if it is none or does not fit the type.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// Removes the first word and the blank after it from `text`; returns the word.
std::string_view TakeWord(std::string_view& text);

// The texts in their order; `between` stands before each that is not the first to hold anything.
template <typename Texts>
std::string Joined(const Texts& texts, std::string_view between) {
  std::string joined;
  for (const auto& text : texts) {
    if (!joined.empty()) joined += between;
    joined += text;
  }
  return joined;
}

// -1 if `c` is not a hexadecimal digit.
inline int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = LowerCase(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Two lower-case digits for each byte.
inline constexpr std::string_view kHexDigits = "0123456789abcdef";
void AppendHex(std::string& out, std::string_view bytes);
std::string EncodeHex(std::span<const unsigned char> bytes);

// Encodes each byte but letters, digits and those in `plain` as %XX (RFC 3986, section 2.1), or with another `sign`.
std::string PercentEncoded(std::string_view text, std::string_view plain = "-._~", char sign = '%');
// nullopt if a % is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecoded(std::string_view text, bool plus_is_space = false);

// base64url without padding (RFC 4648, section 5).
void AppendBase64Url(std::string& out, std::string_view bytes);
std::string EncodeBase64Url(std::string_view bytes);

// base64 with padding (RFC 4648, section 4), the form that providers take.
void AppendBase64(std::string& out, std::string_view bytes);
std::string EncodeBase64(std::string_view bytes);
// Reads either form, also without padding and with white space, because others write it in many ways.
std::optional<std::string> DecodeBase64(std::string_view text);

// nullopt unless EncodeBase64Url can produce exactly `text`: no padding, no white space, no stray bits at the end.
std::optional<std::string> DecodeBase64Url(std::string_view text);

// The entry of `known` that the typo `word` probably stands for; nullopt if none is close.
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> known);

// "1 byte", "1234 bytes": for models and programs. See Counted, for people.
std::string CountOf(std::uint64_t number, std::string_view thing);

// ", did you mean X?" or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

inline constexpr std::string_view kRedacted = "[redacted]";

class LearnedSecrets;

// Replaces each occurrence of a secret by kRedacted. Thread-safe.
class Redactor {
 public:
  // Ignores secrets of less than eight characters, which would match by chance. `learned` may grow; null: none.
  explicit Redactor(std::vector<std::string> secrets, std::shared_ptr<const LearnedSecrets> learned = nullptr);

  // Nothing is, and will be, replaced.
  bool empty() const { return secrets_.empty() && learned_ == nullptr; }
  std::string Redacted(std::string text) const;
  // For a text that arrives in pieces. Each call returns the text that can be shown now and holds back the possible
  // beginning of a secret. Must not outlive this.
  std::function<std::string(std::string_view)> ForPieces() const;

 private:
  // Calls `use` for each secret, the longest first.
  void ForEach(const std::function<void(const std::string&)>& use) const;

  std::vector<std::string> secrets_;  // the longest first
  std::shared_ptr<const LearnedSecrets> learned_;
};

bool IsUtf8(std::string_view bytes);
// A character in UTF-8; U+FFFD for a surrogate or a code beyond U+10FFFF.
std::string Utf8Of(char32_t code);
// Replaces each maximal invalid sequence by U+FFFD (Unicode 15, section 3.9, "substitution of maximal subparts").
std::string ToValidUtf8(std::string_view bytes);
// The number of bytes (0 to 3) at the end of `bytes` that begin an incomplete character. A reader of a byte stream
// holds them back until the rest arrives.
std::size_t IncompleteUtf8Tail(std::string_view bytes);
// The bytes without the tail of a cut character at the beginning.
std::string_view FromUtf8Start(std::string_view bytes);
// At most `max_characters` code points from the start. REQUIRES: `text` is UTF-8.
std::string_view Utf8Prefix(std::string_view text, std::size_t max_characters);
// The number of code points. REQUIRES: `text` is UTF-8.
std::int64_t CharactersIn(std::string_view text);

}  // namespace reprise
