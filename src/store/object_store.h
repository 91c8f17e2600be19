#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

struct StoredObject {
  std::string key;
  Timestamp changed_at;  // by the clock of whoever keeps it
  std::uint64_t bytes = 0;
};

struct ObjectPage {
  std::vector<StoredObject> objects{};
  bool has_more = false;  // the next page begins behind the last of them
};

// Keeps objects, each under a key of the characters A-Z a-z 0-9 / _ . -, on another machine: a bucket. Thread-safe.
// Calls wait for the network, as long as it takes to try a few times.
//
// Common failures: kUnavailable (reason "bucket_unreachable": nobody answers, or only that it cannot now;
// "bucket_refused": it answers, but not to us, or has no such bucket; "bucket_failed": anything else), kStorageFull
// (reason "bucket_full"), kCancelled. Messages name the bucket's own error code, never a key that signs.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // When this returns ok the object is kept. After a failure it may be there or not. Twice the same is ok.
  virtual Result<void> Put(const std::string& key, const std::string& content) = 0;
  // kNotFound if there is no such object.
  virtual Result<std::string> Get(const std::string& key) = 0;
  // Ok, too, if there is none.
  virtual Result<void> Delete(const std::string& key) = 0;
  // Those whose key begins with `prefix`, by rising key, the first `after` the given one.
  virtual Result<ObjectPage> List(const std::string& prefix, const std::string& after) = 0;
};

// The part of a bucket that belongs to one data folder.
struct FileBucket {
  ObjectStore& objects;  // must outlive the user
  std::string prefix{};  // with which the keys of new objects begin; empty: there are to be none
};

}  // namespace reprise
