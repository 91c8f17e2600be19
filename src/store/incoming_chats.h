#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

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

// A stored chat as it is. Fails with what is wrong if any part of it is damaged. `from` must outlive the result; the
// folder must not change meanwhile.
Result<IncomingChat> WholeChat(InteractionStore& from, const ChatId& chat);

// A copy of the branch that ends at `last`, under another name and without the names that clients gave to requests; not
// yet which interactions it has, nor files. `from` must outlive the result. kNotFound.
Result<IncomingChat> CopyUpTo(InteractionStore& from, const ChatId& source, InteractionId last, const ChatId& chat,
                              const std::optional<std::string>& title);

// Adds the chat's files, likewise.
Result<void> AddFiles(FileStore& from, IncomingChat& chat);
// And its blobs.
Result<void> AddBlobs(BlobStore& from, IncomingChat& chat);
// Removes from a data folder what a process has left there that ended while it put a chat together.
// REQUIRES: nobody does so now.
void RemoveIncoming(const std::string& root, FileSystem& file_system);

// Brings chats into a data folder that nobody else uses. Each is put together in a folder of its own there, read back,
// and moved into its place in one step when it is durable: a chat is there as a whole or not at all, whenever the
// process ends. For the real disk only, not thread-safe.
class IncomingChats {
 public:
  struct Options {
    std::string root;                    // created if it is not there
    std::shared_ptr<const KeySet> keys;  // null: plain
    FileSystem& file_system;             // must outlive the object
    bool lock = true;                    // false: the caller has the lock
    WorkCounter* counter = nullptr;      // null: nobody watches
    const FileBucket* bucket = nullptr;  // where the chats' files go; null: into their folders
  };
  // kConflict (reason "store_locked") if a server uses the folder. Removes what an earlier one left behind.
  static Result<IncomingChats> Open(Options options);

  // Whether there is anything under this name.
  bool Has(const ChatId& chat) const;
  // kConflict (reason "chat_exists") if Has. Otherwise the failures of `load` and of InteractionStore; the folder is
  // then as it was. The counter counts each interaction and each file twice: when it is written, and when it is
  // compared; kCancelled if it is told to stop.
  Result<void> Add(const IncomingChat& chat) const;

 private:
  IncomingChats(Options options, std::unique_ptr<DirectoryLock> lock)
      : options_(std::move(options)), lock_(std::move(lock)) {}

  Result<void> Write(const IncomingChat& chat, const std::string& folder) const;
  Result<void> Compare(const IncomingChat& chat, const std::string& folder) const;
  Result<void> Place(const IncomingChat& chat, const std::string& folder) const;

  Options options_;
  std::unique_ptr<DirectoryLock> lock_;  // null: the caller's
};

// Puts the chat's files and blobs into its folder, which is there. The counter counts each.
Result<void> PutParts(const IncomingChat& chat, const IncomingChats::Options& to);

}  // namespace reprise
