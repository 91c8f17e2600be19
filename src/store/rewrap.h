#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/work_counter.h"
#include "crypto/key_set.h"
#include "reprise/error.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

struct Rewrapped {
  std::size_t files = 0;    // changed
  std::size_t current = 0;  // needed no change
  std::vector<Error> left;  // what is sealed, or may be, and could not be opened; untouched; `detail` is the path
};

// Wraps every sealed file of a data folder, its trash and its fallback folders to the set's current key: checkpoints,
// indexes and journals, whatever their names. Each file is replaced as a whole and read again, and all of it is durable
// when this returns; the contents and record digests stay. May be interrupted at any time and called again. Plain files
// and those under the current key are not written.
//
// REQUIRES: the caller holds the data folder's lock. kNotFound without a data folder; kIo, kStorageFull: some files
// have not been reached, none is harmed. `counter` counts the files, sealed or not (null: nobody watches); kCancelled
// if it is told to stop.
Result<Rewrapped> RewrapStore(const std::string& data_folder, const KeySet& keys, FileSystem& file_system,
                              WorkCounter* counter = nullptr);

}  // namespace reprise
