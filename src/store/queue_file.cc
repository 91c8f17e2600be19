#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

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
  std::string_view rest = *text;
  do {
    const std::string_view record = rest.substr(0, rest.find(kQueueRecordEnd));
    rest.remove_prefix(std::min(rest.size(), record.size() + 1));
    auto some = TRY(OpenQueue(chat, record));
    std::move(some.begin(), some.end(), std::back_inserter(messages));
  } while (!rest.empty());
  return messages;
}

Result<std::vector<QueuedMessage>> ChatFiles::OpenQueue(const ChatId& chat, std::string_view text) const {
  std::vector<QueuedMessage> messages;
  const RecordPlace place{.chat = chat, .interaction = std::nullopt, .queue = true};
  const auto record = TRY(format_->Open(place, text));
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

// Who only reads reads what another process has written since.
Result<std::vector<WaitingMessage>> FileInteractionStore::LoadQueue(const ChatId& chat) {
  if (options_.access == Access::kServer) return queues_.Load(chat);
  std::vector<WaitingMessage> waiting;
  for (QueuedMessage& message : TRY(files_.ReadQueue(chat))) waiting.push_back({.message = std::move(message)});
  return waiting;
}

Result<void> FileInteractionStore::AddQueued(const ChatId& chat, const QueuedMessage& message) {
  TRY(CheckWritable());
  return queues_.Add(chat, message);
}

Result<void> FileInteractionStore::ChangeQueued(const ChatId& chat, std::string_view id,
                                                const std::string& user_message) {
  TRY(CheckWritable());
  return queues_.Change(chat, id, user_message);
}

Result<void> FileInteractionStore::RemoveQueued(const ChatId& chat, std::string_view id) {
  TRY(CheckWritable());
  return queues_.Remove(chat, id);
}

Result<void> FileInteractionStore::FailQueued(const ChatId& chat, std::string_view id, const Error& failure) {
  return queues_.NoteFailure(chat, id, failure);
}

Result<void> FileInteractionStore::TakeQueued(const ChatId& chat, std::string_view id) {
  TRY(CheckWritable());
  return queues_.Take(chat, id);
}

Result<void> FileInteractionStore::ClearQueue(const ChatId& chat) {
  TRY(CheckWritable());
  return queues_.Clear(chat);
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
