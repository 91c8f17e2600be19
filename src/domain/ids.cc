#include "reprise/ids.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdio>

#include "base/system.h"
#include "base/text.h"
#include "reprise/principal.h"

namespace reprise {

namespace {

constexpr std::string_view kInteractionPrefix = "int_";
constexpr std::string_view kFilePrefix = "file_";
constexpr std::size_t kFileIdBytes = 16;  // random bytes

}  // namespace

Result<ChatId> ChatId::Parse(std::string_view text) {
  const auto allowed = [](char c) { return IsAsciiAlnum(c) || c == '_' || c == '-'; };
  if (text.empty() || text.size() > 64 || !IsAsciiAlnum(text[0]) || !std::ranges::all_of(text, allowed)) {
    return Fail(Reason::kInvalidChatId,
                "a chat id is 1 to 64 letters, digits, '_' or '-', the first a letter or digit");
  }
  return ChatId(std::string(text));
}

ChatId ChatId::Random() { return ChatId("chat_" + RandomHex(12)); }

Result<InteractionId> InteractionId::Parse(std::string_view text) {
  if (text.starts_with(kInteractionPrefix)) {
    const auto number = ParseNumber<std::uint32_t>(text.substr(kInteractionPrefix.size()));
    if (number && *number >= 1 && *number <= kMaxNumber && FromNumber(*number).str() == text) {
      return InteractionId(*number);
    }
  }
  return Fail(Reason::kInvalidInteractionId, "an interaction id looks like int_001");
}

InteractionId InteractionId::FromNumber(std::uint32_t number) {
  assert(number >= 1 && number <= kMaxNumber);
  return InteractionId(number);
}

std::string InteractionId::str() const {
  const std::string digits = std::to_string(number_);
  return std::string("int_000", 4 + (digits.size() < 3 ? 3 - digits.size() : 0)) + digits;
}

Result<FileId> FileId::Parse(std::string_view text) {
  const std::string_view hex = text.substr(std::min(kFilePrefix.size(), text.size()));
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.starts_with(kFilePrefix) && hex.size() == 2 * kFileIdBytes && std::ranges::all_of(hex, is_hex)) {
    return FileId(std::string(text));
  }
  return Fail(Reason::kInvalidFileId, "a file's id is \"file_\" and 32 hexadecimal digits");
}

FileId FileId::Random() { return FileId(std::string(kFilePrefix) + RandomHex(kFileIdBytes)); }

bool IsPrincipalName(std::string_view name) {
  constexpr std::size_t kMostBytes = 255;
  constexpr char kDelete = 0x7f;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == kDelete; };
  return !name.empty() && name.size() <= kMostBytes && IsUtf8(name) && std::ranges::none_of(name, is_control);
}

}  // namespace reprise
