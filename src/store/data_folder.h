#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/system.h"
#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// kForbidden (reason "folder_not_private") if a user other than this one and root could replace `path` or a directory
// above it, because it belongs to another user or everybody may write to it (without the sticky bit). A missing one
// passes: it is yet to be made, or exists in memory only.
Result<void> CheckPrivateDirectory(const std::string& path);

// Creates a file in the folder, as large as a short turn's, syncs it and removes it. Fails as FileSystem does.
Result<void> ProbeFolder(FileSystem& file_system, const std::string& folder);

// Marks a data folder as used by this process, until the object or the process ends (flock(2), so a dead process leaves
// no lock behind). The file stays. It holds the process id for people, and a line with the URL of the server that holds
// the lock, for clients that look for it.
class DirectoryLock {
 public:
  // The holder of a folder's lock.
  struct Holder {
    std::string pid;  // empty: not written
    std::string url;  // empty: it is not a server, or does not listen yet
  };
  // nullopt if the lock is free. kCorruption (reason "integrity_missing") if the file is a link or not a regular file,
  // kIo.
  static Result<std::optional<Holder>> FindHolder(const std::string& lock_file);

  // Wait in the kernel: AwaitSettled until the holder has written its URL or released the lock, AwaitRelease until it
  // has released the lock. False after `deadline`. REQUIRES: only one thread waits at a time.
  using Clock = std::chrono::steady_clock;
  static bool AwaitSettled(const std::string& lock_file, Clock::time_point deadline);
  static bool AwaitRelease(const std::string& lock_file, Clock::time_point deadline);

  // kConflict (reason "store_locked") if another process, or another object in this process, holds it.
  static Result<std::unique_ptr<DirectoryLock>> Acquire(const std::string& lock_file);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Writes the server's URL (http://HOST:PORT) into the file; the destructor removes it. Best effort: a full disk must
  // not keep the server from starting.
  void NoteUrl(std::string_view url);

 private:
  explicit DirectoryLock(UniqueFd fd) : fd_(std::move(fd)) {}
  const UniqueFd fd_;
  bool is_lock_file_ = false;  // else its content is not ours to replace
};

// The keys that the chats of a data folder are sealed with, or that they are plain. Kept in the file `.sealed_by`, so
// that a start with other keys is noticed without a look at the chats. It does not decide which records can be opened.
struct FolderKeys {
  bool plain = false;
  std::set<std::string> sealing;                  // key ids
  std::set<std::string> given_up;                 // lost keys that a person has given up
  std::map<std::string, std::size_t> missing{};   // key id -> number of chats that only that key opens
  std::size_t plain_chats = 0, sealed_chats = 0;  // if `looked`
  bool looked = false;                            // the chats were looked at
  bool operator==(const FolderKeys&) const = default;
};

enum class FolderMode { kSealed, kPlain };

// The state of `root` for an owner of these keys (null: none). Looks at the chats only if the file is missing, names
// another mode or names a key that is not in `keys`. A missing folder is empty.
Result<FolderKeys> ReadFolderKeys(const std::string& root, FolderMode mode, const KeySet* keys,
                                  FileSystem& file_system);

// The id of the key that a chat's record, or the first line of its journal, is sealed with; "" if it is plain, nullopt
// if it does not tell.
std::optional<std::string> SealedBy(std::string_view record);

// Counts a chat that is sealed by this key, or plain.
void CountChat(FolderKeys& found, const std::string& sealed_by, const KeySet* keys);

// The keys that are given up in `root`.
std::set<std::string> GivenUpKeys(const std::string& root, FileSystem& file_system);

// kForbidden with reason "missing_key" (chats are sealed with missing keys; the message names `key_file`),
// "sealed_folder" (the mode is plain, and the chats are sealed) or "plain_folder" (the reverse).
Result<void> CheckFolderKeys(const FolderKeys& found, FolderMode mode, const std::string& root,
                             const std::string& key_file);

// Records that from now on the current key of `keys` seals here (null: plain), and that missing keys are given up.
// Writes nothing if the file says so already. REQUIRES: the caller holds the folder's lock.
Result<void> NoteFolderKeys(const FolderKeys& found, const std::string& root, const KeySet* keys,
                            FileSystem& file_system);

}  // namespace reprise
