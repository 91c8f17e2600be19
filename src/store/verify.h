#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/queues.h"
#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "store/object_store.h"

// Checks every file of a data folder and reports the defects of each (schemas/FILES.md, Damage). Writes nothing. A
// server may use the folder meanwhile: a file that it is about to finish is not a problem.
//
// Checked are each chat's index, queue, checkpoints, journals, files and blobs, then the grants and the audit log. The
// trash, temporary files and files with other names are skipped.
namespace reprise {

struct Problem {
  std::string file;     // below the data folder: "demo/interactions/int_002.json"
  std::string kind;     // auth, swap, rollback, missing, version, plain or sealed
  std::string message;  // what is wrong, for people
  bool operator==(const Problem&) const = default;
};
struct VerifyReport {
  std::size_t checked = 0;  // files that were opened
  std::vector<Problem> problems;
};

// `keys` may be null: the folder is a plain one. kNotFound if there is no such folder or chat, kIo. `counter` (null:
// none) counts the files of chats and may stop the check (kCancelled). Files in a bucket are read there; kUnavailable
// if that is impossible, or if there is no `bucket` (null).
Result<VerifyReport> VerifyStore(const std::string& root, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                                 WorkCounter* counter = nullptr, const FileBucket* bucket = nullptr);
Result<VerifyReport> VerifyChat(const std::string& root, const ChatId& chat, std::shared_ptr<const KeySet> keys,
                                FileSystem& file_system, WorkCounter* counter = nullptr,
                                const FileBucket* bucket = nullptr);

// Checks one file. At its place in a data folder it is compared with what its neighbours say of it; a copy elsewhere
// only with what it says of itself. kNotFound if it is not there and no neighbour expects it.
Result<VerifyReport> VerifyFile(const std::string& path, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                                WorkCounter* counter = nullptr, const FileBucket* bucket = nullptr);

}  // namespace reprise
