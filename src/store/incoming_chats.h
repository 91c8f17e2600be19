#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/queues.h"
#include "crypto/key_set.h"
#include "reprise/blob_store.h"
#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/incoming_chat.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"
#include "store/data_folder.h"
#include "store/object_store.h"

namespace reprise {

class FileInteractionStore;

// A whole stored chat. Fails with the first defect if an interaction is damaged. `from` must outlive the result; the
// folder must not change meanwhile.
Result<IncomingChat> WholeChat(InteractionStore& from, const ChatId& chat);

// A copy of the branch that ends at `last`, under another name and without the names that clients gave to requests. The
// caller adds the list of interactions and the files. `from` must outlive the result. kNotFound.
Result<IncomingChat> CopyUpTo(InteractionStore& from, const ChatId& source, InteractionId last, const ChatId& chat,
                              const std::optional<std::string>& title);

// Adds the chat's files, with the same failures and lifetime.
Result<void> AddFiles(FileStore& from, IncomingChat& chat);
// Adds its blobs, likewise.
Result<void> AddBlobs(BlobStore& from, IncomingChat& chat);
// Removes from a data folder the unfinished chats of processes that ended while they assembled one.
// REQUIRES: no chat is being assembled now.
void RemoveIncoming(const std::string& root, FileSystem& file_system);

// Adds whole chats to a data folder that nothing else uses. Each is assembled in a folder of its own there, read back,
// and moved into its place in one step when it is durable. So a chat is there as a whole or not at all, whenever the
// process ends. For the real disk only, not thread-safe.
class IncomingChats {
 public:
  struct Options {
    std::string root;                    // created if it is missing
    std::shared_ptr<const KeySet> keys;  // null: plain
    FileSystem& file_system;             // must outlive the object
    bool lock = true;                    // false: the caller has the lock
    WorkCounter* counter = nullptr;      // null: no counter
    const FileBucket* bucket = nullptr;  // takes the chats' files; null: they go into their folders
  };
  // kConflict (reason "store_locked") if a server uses the folder. Removes unfinished chats of earlier processes.
  static Result<IncomingChats> Open(Options options);

  // Whether there is anything under this name.
  bool Has(const ChatId& chat) const;
  // kConflict (reason "chat_exists") if Has. Otherwise the failures of `load` and of InteractionStore; the chat is not
  // there then. The counter counts each interaction, file and blob twice, when it is written and when it is compared,
  // and may stop the work (kCancelled).
  Result<void> Add(const IncomingChat& chat) const;
  // Adds several in the time that the disk takes for one; after a failure none of them is there. Threads load different
  // chats at once.
  Result<void> AddAll(std::span<const IncomingChat> chats) const;

 private:
  IncomingChats(Options options, std::unique_ptr<DirectoryLock> lock)
      : options_(std::move(options)), lock_(std::move(lock)) {}

  // What is known of interactions that are written as additions.
  struct Additions {
    std::vector<std::string> digests{};  // of the records
    std::optional<InteractionStatus> head_status{};
  };

  Result<void> Write(const IncomingChat& chat, const std::string& folder, bool is_alone, Additions& added) const;
  Result<Additions> WriteAdditions(const IncomingChat& chat, bool is_alone, FileInteractionStore& store) const;
  Result<void> Compare(const IncomingChat& chat, const std::string& folder, const Additions& added) const;
  Result<void> CompareAdditions(const IncomingChat& chat, const std::string& folder, const Additions& additions) const;
  Result<void> Assemble(std::span<const IncomingChat> chats, const std::string& folder) const;
  Result<void> Place(std::span<const IncomingChat> chats, const std::string& folder) const;

  Options options_;
  std::unique_ptr<DirectoryLock> lock_;  // null: the caller has it
};

// Puts the chat's files and blobs into its folder, which must exist. The counter counts each.
Result<void> PutParts(const IncomingChat& chat, const IncomingChats::Options& to);

}  // namespace reprise
