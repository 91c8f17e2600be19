#include "archive/stored_count.h"

#include <filesystem>
#include <system_error>

#include "base/posix_file_system.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/sealed_file_store.h"

namespace reprise {

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
