#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// A chat's name, chosen by the client: ^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$. Always safe as a file name.
//
//   const auto chat = reprise::ChatId::Parse("demo");
//   if (!chat) return Complain(chat.error().message);
//   const auto first = reprise::InteractionId::FromNumber(1);
//   Print(chat->str() + "/" + first.str());  // demo/int_001
class ChatId {
 public:
  // kInvalidArgument (reason "invalid_chat_id") if `text` does not match.
  static Result<ChatId> Parse(std::string_view text);
  // A new random id, "chat_" and 96 random bits.
  static ChatId Random();

  const std::string& str() const { return text_; }
  auto operator<=>(const ChatId&) const = default;

 private:
  explicit ChatId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// An interaction's number within its chat, written int_001: at least three digits, counted from 1 in order of creation.
class InteractionId {
 public:
  // kInvalidArgument (reason "invalid_interaction_id") unless `text` is exactly what str() prints for some number.
  static Result<InteractionId> Parse(std::string_view text);
  // REQUIRES: 1 <= number <= kMaxNumber.
  static InteractionId FromNumber(std::uint32_t number);

  std::string str() const;
  std::uint32_t number() const { return number_; }
  auto operator<=>(const InteractionId&) const = default;

  static constexpr std::uint32_t kMaxNumber = 999'999'999;

 private:
  explicit InteractionId(std::uint32_t number) : number_(number) {}
  std::uint32_t number_;
};

// Identifies one interaction among all chats.
struct InteractionRef {
  ChatId chat_id;
  InteractionId interaction_id;
  bool operator==(const InteractionRef&) const = default;
};

// The name of a chat's file: "file_" and 128 random bits in lower-case hex. Always safe as a file name.
class FileId {
 public:
  // kInvalidArgument (reason "invalid_file_id") if `text` has another form.
  static Result<FileId> Parse(std::string_view text);
  static FileId Random();

  const std::string& str() const { return text_; }
  auto operator<=>(const FileId&) const = default;

 private:
  explicit FileId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace reprise

template <>
struct std::hash<reprise::ChatId> {
  std::size_t operator()(const reprise::ChatId& id) const noexcept { return std::hash<std::string>{}(id.str()); }
};
