#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "base/learned_secrets.h"

namespace reprise {

std::string_view Trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::string_view TakeWord(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

void AppendHex(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {kHexDigits[byte >> 4], kHexDigits[byte & 15]};
  }
}

std::string EncodeHex(std::span<const unsigned char> bytes) {
  std::string text;
  AppendHex(text, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return text;
}

std::string PercentEncoded(std::string_view text, std::string_view plain, char sign) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stays = IsAsciiAlnum(c) || plain.find(c) != plain.npos;
    stays ? out += c : out += {sign, kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

std::optional<std::string> PercentDecoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += plus_is_space && text[at] == '+' ? ' ' : text[at];
      continue;
    }
    const int high = at + 2 < text.size() ? HexDigit(text[at + 1]) : -1, low = high < 0 ? -1 : HexDigit(text[at + 2]);
    if (low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return out;
}

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

// The two characters of each 12 bits.
constexpr auto kPairs = [] {
  std::array<std::array<char, 2>, 4096> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {kAlphabet[i >> 6], kAlphabet[i & 63]};
  return pairs;
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
  for (std::size_t i = 0; i < whole; i += 3, to += 4) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    std::memcpy(to, kPairs[group >> 12].data(), 2);
    std::memcpy(to + 2, kPairs[group & 4095].data(), 2);
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

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  AppendBase64(text, bytes);
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string url;
  url.reserve(text.size());
  for (const char c : text) {
    if (!IsSpace(c)) url += c == '+' ? '-' : c == '/' ? '_' : c;
  }
  while (url.ends_with('=')) url.pop_back();
  return DecodeBase64Url(url);
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
  std::uint8_t seen = 0;  // all values or-ed together; the top two bits tell whether one was invalid
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

namespace {

// Counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      rows[i][j] =
          std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

constexpr std::size_t kLongestWord = 40;

}  // namespace

std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> known) {
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> nearest;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const std::size_t distance = begins ? 1 : Distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string CountOf(std::uint64_t number, std::string_view thing) {
  return std::to_string(number) + " " + std::string(thing) + (number == 1 ? "" : "s");
}

std::string DidYouMean(std::string_view word, std::span<const std::string> known) {
  const auto nearest = Nearest(word, known);
  return nearest ? ", did you mean " + *nearest + "?" : "";
}

namespace {

// Linear in the text, because each kept byte is copied once.
std::string Without(const std::string& secret, std::string text) {
  std::size_t at = text.find(secret);
  if (at == std::string::npos) return text;
  std::string kept;
  std::size_t from = 0;
  for (; at != std::string::npos; at = text.find(secret, from)) {
    kept.append(text, from, at - from).append(kRedacted);
    from = at + secret.size();
  }
  return kept.append(text, from);
}

// The number of bytes at the end of `text` that may begin `secret`.
std::size_t BegunAtEnd(std::string_view text, std::string_view secret) {
  for (std::size_t size = std::min(text.size(), secret.size() - 1); size > 0; --size) {
    if (text.ends_with(secret.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

Redactor::Redactor(std::vector<std::string> secrets, std::shared_ptr<const LearnedSecrets> learned)
    : secrets_(std::move(secrets)), learned_(std::move(learned)) {
  std::erase_if(secrets_, [](const std::string& secret) { return secret.size() < kShortestSecret; });
  std::ranges::sort(secrets_, [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  secrets_.erase(std::unique(secrets_.begin(), secrets_.end()), secrets_.end());
}

std::string Redactor::Redacted(std::string text) const {
  ForEach([&](const std::string& secret) { text = Without(secret, std::move(text)); });
  return text;
}

void Redactor::ForEach(const std::function<void(const std::string&)>& use) const {
  auto known = secrets_.begin();
  const auto learned = learned_ ? learned_->All() : nullptr;
  if (learned) {
    for (const std::string& secret : *learned) {
      while (known != secrets_.end() && known->size() >= secret.size()) use(*known++);
      use(secret);
    }
  }
  while (known != secrets_.end()) use(*known++);
}

std::function<std::string(std::string_view)> Redactor::ForPieces() const {
  return [this, held = std::make_shared<std::string>()](std::string_view piece) {
    std::string text = Redacted(std::exchange(*held, {}).append(piece));
    std::size_t begun = 0;
    ForEach([&](const std::string& secret) { begun = std::max(begun, BegunAtEnd(text, secret)); });
    *held = text.substr(text.size() - begun);
    text.resize(text.size() - begun);
    return text;
  };
}

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
