#include "terminal/keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace reprise {
namespace {

constexpr char kEsc = '\x1b';
constexpr int kShift = 1, kAlt = 2, kCtrl = 4;  // bits of a modifier, less one

Key Edits(std::string bytes, std::size_t length) {
  return {.kind = Key::Kind::kEdits, .bytes = std::move(bytes), .length = length};
}

// The numbers between the semicolons. Text after a colon in one has further details of the same key, which are ignored.
std::vector<int> NumbersOf(std::string_view parameters) {
  std::vector<int> numbers;
  for (std::size_t from = 0; from <= parameters.size();) {
    const std::size_t end = std::min(parameters.find(';', from), parameters.size());
    int number = 0;
    std::from_chars(parameters.data() + from, parameters.data() + end, number);
    numbers.push_back(number);
    from = end + 1;
  }
  numbers.resize(std::max<std::size_t>(numbers.size(), 3));
  return numbers;
}

// Whether the editor has a command for Alt with this letter, or Alt deletes a word with it.
bool HasMeaningWithAlt(char letter) { return std::string_view("bcdflu\x7f\b").find(letter) != std::string_view::npos; }

// A key that the terminal reports by its code and the held keys.
Key CodedKey(int code, int held, std::size_t length) {
  held &= 0x3f;  // ignores Caps Lock and Num Lock
  constexpr int kPrivate = 0xe000, kBehindPrivate = 0xf8ff, kLast = 0x10ffff;
  if (code <= 0 || code > kLast || (code >= kPrivate && code <= kBehindPrivate)) return {.bytes = {}, .length = length};
  if (code == kEsc || (code == '[' && held == kCtrl)) return {Key::Kind::kEscape, {}, length};
  if (code == '\r' && held != 0) return Edits(held == kCtrl ? "\r" : "\x1b\r", length);
  if ((held & ~kShift) == 0) return Edits(Utf8Of(static_cast<char32_t>(code)), length);
  const char letter = code < 0x80 ? static_cast<char>(code) : '\0';
  if (held == kCtrl && letter >= '@' && letter != '\x7f') return Edits({static_cast<char>(letter & 0x1f)}, length);
  if (held == kAlt && HasMeaningWithAlt(letter)) return Edits({kEsc, letter}, length);
  if (letter == '\x7f') return Edits({letter}, length);
  return held == kAlt ? Edits(Utf8Of(static_cast<char32_t>(code)), length) : Key{.bytes = {}, .length = length};
}

// A whole sequence: ESC [ parameters final.
Key SequenceKey(std::string_view sequence) {
  const char final = sequence.back();
  const std::vector<int> numbers = NumbersOf(sequence.substr(2, sequence.size() - 3));
  const int held = std::max(numbers[1], 1) - 1;
  if (final == 'u') return CodedKey(numbers[0], held, sequence.size());
  if (final == '~' && numbers[0] == 27) return CodedKey(numbers[2], held, sequence.size());
  if (std::string_view("ABCDHF").find(final) != std::string_view::npos && numbers[0] <= 1) {
    const bool by_word = (held & (kAlt | kCtrl)) != 0 && (final == 'C' || final == 'D');
    return Edits(by_word ? std::string("\x1b[1;5") + final : std::string("\x1b[") + final, sequence.size());
  }
  constexpr std::array kKnown = {1, 3, 4, 200, 201};  // Home, Delete, End, and the marks of a paste
  if (final == '~' && std::find(kKnown.begin(), kKnown.end(), numbers[0]) != kKnown.end()) {
    return Edits("\x1b[" + std::to_string(numbers[0]) + "~", sequence.size());
  }
  return {.bytes = {}, .length = sequence.size()};
}

std::optional<Key> Character(std::string_view bytes, bool no_more) {
  if (!no_more && IncompleteUtf8Tail(bytes.substr(0, 4)) == std::min<std::size_t>(bytes.size(), 4)) return std::nullopt;
  const auto first = static_cast<unsigned char>(bytes.front());
  std::size_t most = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  most = std::min(most, bytes.size());
  std::size_t length = 1;  // a truncated character ends where the next one begins
  while (length < most && (static_cast<unsigned char>(bytes[length]) & 0xc0) == 0x80) ++length;
  return Edits(std::string(bytes.substr(0, length)), length);
}

}  // namespace

std::optional<Key> FirstKey(std::string_view bytes, bool in_paste, bool no_more) {
  if (in_paste) {
    if (bytes.starts_with(kPasteEnd)) return Edits(std::string(kPasteEnd), kPasteEnd.size());
    if (kPasteEnd.starts_with(bytes) && !no_more) return std::nullopt;
    return Character(bytes, no_more);
  }
  if (bytes.front() != kEsc) return Character(bytes, no_more);
  const Key alone{Key::Kind::kEscape, {}, 1};
  if (bytes.size() == 1) return no_more ? std::optional(alone) : std::nullopt;
  if (bytes[1] == '[') {
    std::size_t at = 2;
    while (at < bytes.size() && bytes[at] >= 0x20 && bytes[at] <= 0x3f) ++at;
    if (at == bytes.size()) return no_more ? std::optional(alone) : std::nullopt;
    return bytes[at] >= 0x40 && bytes[at] <= 0x7e ? SequenceKey(bytes.substr(0, at + 1)) : alone;
  }
  if (bytes[1] == 'O') {
    if (bytes.size() == 2) return no_more ? std::optional(alone) : std::nullopt;
    if (std::string_view("ABCDHF").find(bytes[2]) != std::string_view::npos) {
      return Edits(std::string("\x1b[") + bytes[2], 3);
    }
    return bytes[2] >= 'P' && bytes[2] <= 'S' ? Key{.bytes = {}, .length = 3} : alone;  // F1 to F4
  }
  if (bytes[1] == '\r' || bytes[1] == '\n') return Edits("\x1b\r", 2);
  // A letter with Alt comes alone, but text directly after Esc does not.
  const bool is_chord = HasMeaningWithAlt(bytes[1]) && (bytes.size() == 2 || bytes[2] == kEsc);
  return is_chord ? Edits(std::string(bytes.substr(0, 2)), 2) : alone;
}

}  // namespace reprise
