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

// Looks at every file of a data folder and says what is wrong with which (schemas/FILES.md, Damage). Nothing is
// written, and a server may work in the folder meanwhile: a file that it is about to finish is not a problem.
//
// Looked at are chat.json, the checkpoints, the journals and the files of each chat. What lies in the trash, temporary
// files and everything that has another name are passed over.
namespace reprise {

struct Problem {
  std::string file;     // below the data folder: "demo/interactions/int_002.json"
  std::string kind;     // auth, swap, rollback, missing, version or plain
  std::string message;  // what is wrong, for people
  bool operator==(const Problem&) const = default;
};
struct VerifyReport {
  std::size_t checked = 0;  // files that were opened
  std::vector<Problem> problems;
};

// `keys` may be null: the folder is a plain one. kNotFound if there is no such folder or chat, kIo. `counter` counts
// the files of chats (null: nobody watches); kCancelled if it is told to stop. Files in a bucket are read there;
// kUnavailable if that cannot be, or if there is no `bucket` (null).
Result<VerifyReport> VerifyStore(const std::string& root, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                                 WorkCounter* counter = nullptr, const FileBucket* bucket = nullptr);
Result<VerifyReport> VerifyChat(const std::string& root, const ChatId& chat, std::shared_ptr<const KeySet> keys,
                                FileSystem& file_system, WorkCounter* counter = nullptr,
                                const FileBucket* bucket = nullptr);

// One file. If it lies where a data folder would have it, its neighbours are asked what they know of it; a copy
// elsewhere is only compared with what it says of itself. kNotFound if it is neither there nor missed by anybody.
Result<VerifyReport> VerifyFile(const std::string& path, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                                WorkCounter* counter = nullptr, const FileBucket* bucket = nullptr);

}  // namespace reprise
