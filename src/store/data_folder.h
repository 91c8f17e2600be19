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

// kForbidden (reason "folder_not_private") if a user other than this one and root could put something else in the place
// of `path` or of a directory above it: one that belongs to someone else, or that everybody may write to (without the
// sticky bit). What is not there passes: it is yet to be made, or belongs to a file system in memory.
Result<void> CheckPrivateDirectory(const std::string& path);

// Whether a file can be made in the folder, with as much in it as a short turn writes, and reaches the disk. It is gone
// afterwards. Fails as FileSystem does.
Result<void> ProbeFolder(FileSystem& file_system, const std::string& folder);

// Marks a data folder as used by this process, until the object or the process ends (flock(2): a lock that its process
// has left behind blocks nobody). The file stays; it holds the process id for people to read, and a line with the URL
// of the server that has the lock, for who looks for it.
class DirectoryLock {
 public:
  // Who has the lock of a folder.
  struct Holder {
    std::string pid;  // empty: it has not said so
    std::string url;  // of the server; empty: it is none, or does not listen yet
  };
  // nullopt: nobody. kCorruption (reason "integrity_missing") if the file is a symbolic link or no file at all, kIo.
  static Result<std::optional<Holder>> FindHolder(const std::string& lock_file);

  // Wait in the kernel until whoever has the lock has said in the file whether it is a server and where, or has let go
  // of the lock. False: not by then. Two threads do not wait at the same time.
  using Clock = std::chrono::steady_clock;
  static bool AwaitSettled(const std::string& lock_file, Clock::time_point deadline);
  static bool AwaitRelease(const std::string& lock_file, Clock::time_point deadline);

  // kConflict (reason "store_locked") if another server, or another lock in this process, has it.
  static Result<std::unique_ptr<DirectoryLock>> Acquire(const std::string& lock_file);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Where the server that has the lock listens; gone from the file when the lock is. Best effort: a full disk must not
  // keep the server from starting. `url` is http://HOST:PORT.
  void NoteUrl(std::string_view url);

 private:
  explicit DirectoryLock(UniqueFd fd) : fd_(std::move(fd)) {}
  const UniqueFd fd_;
  bool is_lock_file_ = false;  // else what it holds is not ours to replace
};

// Which keys the chats of a data folder are sealed with, or that they are plain: known from the file `.sealed_by`, so
// that a start with other keys is noticed without a look at the chats. It decides nothing about what can be opened.
struct FolderKeys {
  bool plain = false;
  std::set<std::string> sealing;                  // key ids
  std::set<std::string> given_up;                 // keys that are gone, as a person has said
  std::map<std::string, std::size_t> missing{};   // key id -> number of chats that only that key opens
  std::size_t plain_chats = 0, sealed_chats = 0;  // if the chats were looked at
  bool looked = false;                            // at the chats
  bool operator==(const FolderKeys&) const = default;
};

enum class FolderMode { kSealed, kPlain };

// What stands in `root` for somebody who has these keys (null: there are none). Looks at the chats only if the file is
// not there, says another mode or names a key that is not in `keys`. A folder that is not there has nothing in it.
Result<FolderKeys> ReadFolderKeys(const std::string& root, FolderMode mode, const KeySet* keys,
                                  FileSystem& file_system);

// The id of the key that a chat's record, or the first line of its journal, is sealed with; "": it is plain; nullopt:
// it does not tell.
std::optional<std::string> SealedBy(std::string_view record);

// Counts a chat that is sealed by this key, or plain.
void CountChat(FolderKeys& found, const std::string& sealed_by, const KeySet* keys);

// The keys that are given up, as it stands in `root`.
std::set<std::string> GivenUpKeys(const std::string& root, FileSystem& file_system);

// kForbidden with reason "missing_key" (chats are sealed with keys that are not there), "sealed_folder" (plain is
// asked for, and the chats are sealed) or "plain_folder" (the reverse). The message names `key_file`.
Result<void> CheckFolderKeys(const FolderKeys& found, FolderMode mode, const std::string& root,
                             const std::string& key_file);

// Writes down that from now on the current key of `keys` seals here (null: nothing does), and that missing keys are
// given up. Writes nothing if that is known already. REQUIRES: the caller holds the folder's lock.
Result<void> NoteFolderKeys(const FolderKeys& found, const std::string& root, const KeySet* keys,
                            FileSystem& file_system);

}  // namespace reprise
