#include <nlohmann/json.hpp>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"

namespace reprise {
namespace {

constexpr int kQueueSchema = 1;

}  // namespace

Result<std::vector<QueuedMessage>> ChatFiles::ReadQueue(const ChatId& chat) const {
  std::vector<QueuedMessage> messages;
  const auto text = ReadRecordText(file_system_, QueueFile(root_, chat), {.chat = chat, .queue = true});
  if (!text && text.error().code == ErrorCode::kNotFound) return messages;
  if (!text) return Fail(text.error());
  const RecordPlace place{.chat = chat, .interaction = std::nullopt, .queue = true};
  const auto record = TRY(format_->Open(place, *text));
  const auto malformed = [&] { return Fail(IntegrityError("auth", place, "its content is not what it should be")); };
  const auto json = ParseJson(record.plaintext);
  if (!json || !json->is_object()) return malformed();
  if (const auto schema = json->find("schema"); schema == json->end() || *schema != kQueueSchema) {
    return Fail(IntegrityError("version", place, "its schema is not known to this version"));
  }
  if (const auto id = json->find("chat_id"); id == json->end() || *id != chat.str()) {
    return Fail(IntegrityError("swap", place, "it describes another chat"));
  }
  const auto listed = json->find("messages");
  if (listed == json->end() || !listed->is_array()) return malformed();
  for (const Json& each : *listed) {
    auto message = QueuedMessageFromJson(each);
    if (!message) return malformed();
    messages.push_back(*std::move(message));
  }
  return messages;
}

Result<std::string> ChatFiles::SealQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const {
  Json listed = Json::array();
  for (const QueuedMessage& message : messages) listed.push_back(ToJson(message));
  const Json json = {{"schema", kQueueSchema}, {"chat_id", chat.str()}, {"messages", std::move(listed)}};
  return format_->Seal({.chat = chat, .interaction = std::nullopt, .queue = true}, {}, DumpJson(json))
      .map([](SealedRecord record) { return std::move(record.text); });
}

Result<void> ChatFiles::WriteQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) const {
  const std::string path = QueueFile(root_, chat);
  if (messages.empty()) {
    auto removed = file_system_.RemoveFile(path);
    if (!removed && removed.error().code == ErrorCode::kNotFound) return {};
    return removed.and_then([&] { return SyncChatDirectory(chat); });
  }
  const std::string record = TRY(SealQueue(chat, messages));
  // The chat may be so new that nothing of it is durable yet.
  return ReplaceFile(file_system_, path, record).and_then([&] { return SyncNames(chat); });
}

Result<std::vector<QueuedMessage>> FileInteractionStore::LoadQueue(const ChatId& chat) {
  return files_.ReadQueue(chat);
}

Result<void> FileInteractionStore::SaveQueue(const ChatId& chat, const std::vector<QueuedMessage>& messages) {
  TRY(CheckWritable());
  return files_.WriteQueue(chat, messages);
}

Result<std::vector<ChatId>> FileInteractionStore::ListQueues() {
  auto chats = TRY(files_.ListChats());
  std::erase_if(chats, [&](const ChatId& chat) {
    const auto entries = options_.file_system.ReadFile(QueueFile(options_.root, chat), kMaxRecordBytes);
    return !entries && entries.error().code == ErrorCode::kNotFound;
  });
  return chats;
}

}  // namespace reprise
