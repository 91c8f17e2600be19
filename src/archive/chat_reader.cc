#include "archive/chat_reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "app/chat_keys.h"
#include "archive/record_reference.h"
#include "base/logging.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "domain/codec.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/file_interaction_store.h"
#include "store/sealed_file_store.h"
#include "terminal/console.h"

namespace reprise {

Result<ChatReader> ChatReader::Open(const Flags& flags, const Environment& environment, WorkCounter* reads) {
  auto options = TRY(LoadOptions(flags, environment));
  SetLogLevel(LogLevel::kError);  // the store's warnings are for a server's log
  auto keys = TRY(KeysFor(options));
  auto source = TRY(ChatSource::Open(options));
  auto store = FileInteractionStore::Open({.root = source.root(),
                                           .keys = keys,
                                           .file_system = source.file_system(),
                                           .access = FileInteractionStore::Access::kReadOnly,
                                           .reads = reads});
  if (!store && store.error().code == ErrorCode::kNotFound) {
    return Fail(NoDataFolder(options.data_dir));
  }
  if (!store) return Fail(store.error());
  auto bucket = ChatBucket::OpenToRead(options, reads ? reads->stop_token() : std::stop_token());
  auto files = std::make_unique<SealedFileStore>(SealedFileStore::Options{
      .root = source.root(), .keys = keys, .file_system = source.file_system(), .bucket = FilesOf(bucket)});
  auto blobs = std::make_unique<FileBlobStore>(source.root(), keys, source.file_system());
  return ChatReader(std::move(options), std::move(bucket), std::move(source), *std::move(store), std::move(files),
                    std::move(blobs));
}

Result<std::vector<ChatId>> ChatReader::AllChats() const {
  // Reads only names, so the record format does not matter.
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

std::set<InteractionId> HeadBranch(const Chat& chat) {
  std::map<InteractionId, std::optional<InteractionId>> parents;
  for (const Interaction& interaction : chat.interactions) parents[interaction.id] = interaction.parent_id;
  std::set<InteractionId> branch;
  for (auto id = chat.summary.head; id && branch.insert(*id).second;) {
    const auto parent = parents.find(*id);
    id = parent == parents.end() ? std::nullopt : parent->second;  // beyond a damaged one the branch is unknown
  }
  return branch;
}

Json ChatToJson(const Chat& chat, bool all_branches) {
  const auto branch = HeadBranch(chat);
  Json json = ToJson(chat.summary);
  Json& interactions = json["interactions"] = Json::array();
  for (const Interaction& interaction : chat.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (superseded && !all_branches) continue;
    interactions.push_back(ToJson(interaction));
    if (all_branches) interactions.back()["superseded"] = superseded;
  }
  for (const DamagedInteraction& damaged : chat.damaged) {
    json["damaged"].push_back(ToJson(damaged));
  }
  return json;
}

StoredCount CountStored(const std::string& data_dir, std::span<const ChatId> chats) {
  const ChatFiles stored(data_dir, MakeRecordFormat(nullptr), Disk());
  StoredCount count{.chats = chats.size()};
  for (const ChatId& chat : chats) {
    if (const auto listed = stored.ListInteractions(chat)) {
      count.interactions += listed->checkpoints.size();
      count.journals += listed->journals.size();
    }
    if (const auto files = ListFileIds(data_dir, chat, Disk())) count.files += files->size();
    if (const auto blobs = ListBlobNames(data_dir, chat, Disk())) count.files += blobs->size();
  }
  return count;
}

std::uint64_t CountFilesBelow(const std::string& folder) {
  using std::filesystem::recursive_directory_iterator;
  std::uint64_t count = 0;
  std::error_code failed;
  for (recursive_directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code gone;
    if (std::filesystem::is_regular_file(entry->symlink_status(gone))) ++count;
  }
  return count;
}

}  // namespace reprise
