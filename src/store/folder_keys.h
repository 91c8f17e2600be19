#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

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
