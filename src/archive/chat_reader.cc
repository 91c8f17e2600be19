#include "archive/chat_reader.h"

#include <algorithm>

#include "app/chat_keys.h"
#include "archive/record_reference.h"
#include "base/logging.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/file_interaction_store.h"
#include "store/sealed_file_store.h"
#include "terminal/console.h"

namespace reprise {

Result<ChatReader> ChatReader::Open(const Flags& flags, const Environment& environment, WorkCounter* reads) {
  auto options = LoadOptions(flags, environment);
  if (!options) return Fail(options.error());
  SetLogLevel(LogLevel::kError);  // what the store notices is for a server's log
  auto keys = KeysFor(*options);
  if (!keys) return Fail(keys.error());
  auto source = ChatSource::Open(*options);
  if (!source) return Fail(source.error());
  auto store = FileInteractionStore::Open({.root = source->root(),
                                           .keys = *keys,
                                           .file_system = source->file_system(),
                                           .access = FileInteractionStore::Access::kReadOnly,
                                           .reads = reads});
  if (!store && store.error().code == ErrorCode::kNotFound) {
    return Fail(NoDataFolder(options->data_dir));
  }
  if (!store) return Fail(store.error());
  auto bucket = ChatBucket::OpenToRead(*options, reads ? reads->stop_token() : std::stop_token());
  auto files = std::make_unique<SealedFileStore>(SealedFileStore::Options{
      .root = source->root(), .keys = *keys, .file_system = source->file_system(), .bucket = FilesOf(bucket)});
  auto blobs = std::make_unique<FileBlobStore>(source->root(), *keys, source->file_system());
  return ChatReader(*std::move(options), std::move(bucket), *std::move(source), *std::move(store), std::move(files),
                    std::move(blobs));
}

Result<std::vector<ChatId>> ChatReader::AllChats() const {
  // Only names are read: which format they are in does not matter.
  auto chats = ChatFiles(source_.root(), MakeRecordFormat(nullptr), source_.file_system()).ListChats();
  if (chats) std::sort(chats->begin(), chats->end());
  return chats;
}

ChatId ChatReader::Named(const ChatId& chat) const {
  const auto chats = AllChats();
  return chats ? WithUniqueBeginning(chat, *chats) : chat;
}

void ComplainOfDamage(const Chat& chat) {
  for (const DamagedInteraction& damaged : chat.damaged) Complain(damaged.error);
}

}  // namespace reprise
