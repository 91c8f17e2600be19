#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/queues.h"
#include "crypto/key_set.h"
#include "reprise/error.h"
#include "reprise/file_system.h"
#include "reprise/result.h"
#include "store/object_store.h"

namespace reprise {

struct Rewrapped {
  std::size_t files = 0;    // changed
  std::size_t current = 0;  // needed no change
  std::vector<Error> left;  // files that are or may be sealed and could not be opened: untouched; `detail` is the path
};

// Wraps the keys of all sealed files of a data folder, its trash and its fallback folders with the set's current key:
// checkpoints, indexes and journals, whatever their names. Each file is replaced as a whole and read again, and all of
// it is durable when this returns; the contents and record digests stay. May be interrupted at any time and called
// again. Plain files and those under the current key are not written.
//
// REQUIRES: the caller holds the data folder's lock. kNotFound without a data folder; kIo, kStorageFull: some files
// were not reached, none is damaged. `counter` (null: none) counts the files, sealed or not, and may stop the work
// (kCancelled).
Result<Rewrapped> RewrapStore(const std::string& data_folder, const KeySet& keys, FileSystem& file_system,
                              WorkCounter* counter = nullptr);

// Occasional work on the files of a data folder whose objects are in a bucket: those of its chats, of the trash, and of
// chats that are being added.

struct BucketUpkeep {
  std::string root;  // the data folder
  std::shared_ptr<const KeySet> keys;
  FileSystem& file_system;
  const FileBucket& bucket;
  WorkCounter* counter = nullptr;  // counts objects, or files; null: no counter
};

// How long an object may be in the bucket before the folder refers to it.
inline constexpr std::chrono::hours kSweepAge{1};

struct Swept {
  std::size_t objects = 0;  // of this folder, in the bucket
  std::size_t young = 0;    // without a record, and less than kSweepAge old: perhaps being put just now
  std::vector<StoredObject> taken;
};
// Deletes the objects of this folder that no record of it names and that are older than kSweepAge at `now`; with
// `dry_run` it only lists them. All objects of an unreadable record's file are kept. A server may use the folder
// meanwhile. Fails, with nothing more deleted, as ObjectStore and FileSystem do; kCancelled.
Result<Swept> SweepBucket(const BucketUpkeep& upkeep, Timestamp now, bool dry_run);

struct Moved {
  std::size_t files = 0;    // moved
  std::uint64_t bytes = 0;  // of their records
  std::size_t there = 0;    // needed no move
  std::vector<Error> left;  // files that cannot be read: untouched
};
// Moves the files that lie in the folder into the bucket, byte for byte, or back. Each is stored in its new place, and
// checked, before it leaves the old one. May be interrupted at any time and called again.
// REQUIRES: the caller holds the folder's lock. Fails as above; files that were moved stay moved.
Result<Moved> PushFiles(const BucketUpkeep& upkeep);
Result<Moved> PullFiles(const BucketUpkeep& upkeep);

// As RewrapStore, for the objects that the folder's records name; adds to `done`.
// REQUIRES: the caller holds the folder's lock, and the records are under the current key.
Result<void> RewrapObjects(const BucketUpkeep& upkeep, Rewrapped& done);

// The number of readable records that refer to a bucket, which is not needed for this.
Result<std::size_t> CountReferences(const std::string& root, const std::shared_ptr<const KeySet>& keys,
                                    FileSystem& file_system);

}  // namespace reprise
