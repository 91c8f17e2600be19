// Chats in the trash: listing and restoring them.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/store_errors.h"

namespace reprise {
namespace {

Result<bool> HasName(FileSystem& file_system, const std::string& folder, const std::string& name) {
  return file_system.ListDirectory(folder).map([&](const std::vector<DirectoryEntry>& entries) {
    return std::ranges::any_of(entries, [&](const auto& each) { return each.name == name; });
  });
}

// The bytes of the files below the folder; no link is followed. For people, so an unreadable file counts as 0.
std::uint64_t BytesIn(const std::string& folder) {
  using std::filesystem::recursive_directory_iterator;
  std::uint64_t bytes = 0;
  std::error_code failed;
  for (recursive_directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code gone;
    if (!std::filesystem::is_regular_file(entry->symlink_status(gone))) continue;
    const auto size = entry->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace

Result<std::vector<TrashEntry>> ChatFiles::ListTrash() const {
  const std::string trash = TrashDirectory(root_);
  std::vector<TrashEntry> entries;
  for (const DirectoryEntry& each : TRY(ListFolder(file_system_, trash, ".trash"))) {
    const auto name = each.is_directory ? ParseTrashName(each.name) : std::nullopt;
    if (!name) continue;
    const std::string folder = trash + "/" + each.name;
    const auto index = ReadRecordText(file_system_, folder + "/chat.json", {.chat = name->chat})
                           .and_then([&](const std::string& text) { return OpenIndex(name->chat, text); });
    entries.push_back({.id = each.name,
                       .chat_id = name->chat,
                       .title = index ? std::optional(index->summary.title) : std::nullopt,
                       .deleted_at = name->deleted_at,
                       .bytes = BytesIn(folder)});
  }
  std::ranges::sort(entries, [](const TrashEntry& a, const TrashEntry& b) {
    return a.deleted_at != b.deleted_at ? a.deleted_at > b.deleted_at : a.id < b.id;
  });
  return entries;
}

Result<void> ChatFiles::FindInTrash(const ChatId& chat, const std::string& entry) const {
  const auto name = ParseTrashName(entry);
  if (!name || name->chat != chat) return NotInTrash();
  const std::string trash = TrashDirectory(root_);
  const auto deleted = HasName(file_system_, trash, entry);
  if (!deleted && !IsNotFound(deleted.error())) return Fail(FolderError(".trash", deleted.error()));
  if (!deleted || !*deleted) return NotInTrash();
  // A link or a file is not a deleted chat.
  const auto inside = file_system_.ListDirectory(trash + "/" + entry);
  if (!inside && IsNotFound(inside.error())) return NotInTrash();
  if (!inside) return Fail(FolderError(".trash/" + entry, inside.error()));
  return {};
}

Result<ChatOnDisk> ChatFiles::TakeFromTrash(const ChatId& chat, const std::string& entry) const {
  TRY(FindInTrash(chat, entry));
  const std::string trash = TrashDirectory(root_);
  const std::string from = trash + "/" + entry, to = ChatDirectory(root_, chat);
  const auto taken = TRY(HasName(file_system_, root_, chat.str()));
  if (taken) return ChatExists();  // even if it is an empty folder, which a rename would replace
  if (const auto unfinished = file_system_.ListDirectory(from + "/interactions"); unfinished) {
    const bool journals = std::ranges::any_of(
        *unfinished, [](const DirectoryEntry& each) { return ParseJournalFile(each.name).has_value(); });
    // Without this list the next start looks into every chat for journals, and finds these.
    auto forgotten = journals ? file_system_.RemoveFile(RunningFile(root_)) : Result<void>();
    if (!forgotten && !IsNotFound(forgotten.error())) return Fail(forgotten.error());
  }
  if (auto moved = file_system_.Rename(from, to); !moved) {
    return IsNotFound(moved.error()) ? NotInTrash() : Fail(std::move(moved.error()));
  }
  // The chat's name in the data folder becomes durable before that in the trash is gone: between two syncs it may be
  // found in both places, never in none.
  auto found = SyncRoot().and_then([&] { return ReadChat(chat); });
  if (!found) {
    if (auto back = file_system_.Rename(to, from); !back) {
      LogError("a chat that could not be restored lies in the data folder, not in the trash",
               {{"chat", chat.str()}, {"detail", back.error().detail}});
    }
    static_cast<void>(file_system_.SyncDirectory(trash).and_then([&] { return SyncRoot(); }));
    if (IsNotFound(found.error())) {
      return Fail(IntegrityError("missing", {.chat = chat}, "there is nothing of the chat in " + entry));
    }
    return found;
  }
  if (auto synced = file_system_.SyncDirectory(trash); !synced) {
    LogWarning("a restored chat may be found in the trash as well after a power loss", {{"chat", chat.str()}});
  }
  return found;
}

Result<std::vector<TrashEntry>> FileInteractionStore::ListTrash() { return files_.ListTrash(); }

Result<ChatSummary> FileInteractionStore::RestoreChat(const ChatId& chat, const std::string& entry) {
  TRY(CheckWritable());
  // First, so that a repeated call is told that the entry is gone, and not that the restored chat is in the way.
  TRY(files_.FindInTrash(chat, entry));
  // Makes every other use of the name wait until the chat on disk can be read.
  auto held = HoldChat(chat, Missing::kLeave, Hold::kStateAndIndex);
  if (!held && held.error().code == ErrorCode::kCorruption) return ChatExists();  // a damaged chat has the name
  if (!held) return Fail(std::move(held.error()));
  if (!held->created) return ChatExists();
  auto restored = files_.TakeFromTrash(chat, entry);
  DropStates(chat);
  queues_.Forget(chat);
  Retire(chat, *held);
  return restored.map([](const ChatOnDisk& on_disk) { return on_disk.index.summary; });
}

}  // namespace reprise
