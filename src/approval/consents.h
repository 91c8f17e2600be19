#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// What a person sees of a tool when agreeing to it, as digests.
struct ToolFingerprint {
  std::string launch;       // how the server is run or reached
  std::string description;  // what the model is told
  std::string schema;       // of arguments and results, and the annotations
  bool operator==(const ToolFingerprint&) const = default;
};

// Which tools of other programs a person has approved, as they were then: kept in a file (schemas/FILES.md), so that a
// server that is swapped, or changes what its tools claim to be, is noticed even after a restart. Where chats are
// sealed the file has a MAC, and what it says counts only under a key that is still there. Thread-safe.
class Consents {
 public:
  // `keys` is null for a plain data folder. `file_system` must outlive the object. The file is read at the first look.
  Consents(FileSystem& file_system, std::string path, std::shared_ptr<const KeySet> keys)
      : file_system_(file_system), path_(std::move(path)), keys_(std::move(keys)) {}

  enum class State { kGiven, kNew, kLaunchChanged, kDescriptionChanged, kSchemaChanged };
  State Look(const std::string& server, const std::string& tool, const ToolFingerprint& now);
  // From now on this is what was approved. When it returns ok, also after a restart; a failure is the disk's.
  Result<void> Give(const std::string& server, const std::string& tool, const ToolFingerprint& now);

 private:
  void ReadOnce() REQUIRES(mutex_);
  std::string FileText() const REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  const std::shared_ptr<const KeySet> keys_;
  Mutex mutex_;
  bool read_ GUARDED_BY(mutex_) = false, damaged_ GUARDED_BY(mutex_) = false;
  std::map<std::string, std::map<std::string, ToolFingerprint>> given_ GUARDED_BY(mutex_);  // by server and tool
};

}  // namespace reprise
