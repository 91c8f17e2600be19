#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// Digests of a tool's properties that a person sees when approving it.
struct ToolFingerprint {
  std::string launch;       // how the server is started or reached
  std::string description;  // the text for the model
  std::string schema;       // the schemas of arguments and results, and the annotations
  bool operator==(const ToolFingerprint&) const = default;
};

// The tools of other programs that a person approved, as they were then. Kept in a file (schemas/FILES.md), so that
// even after a restart we notice a swapped server or a tool with another description. If chats are sealed, the file has
// a MAC and counts only if its key still exists. Thread-safe.
class Consents {
 public:
  // `keys` is null for a plain data folder. `file_system` must outlive the object. The first call reads the file.
  Consents(FileSystem& file_system, std::string path, std::shared_ptr<const KeySet> keys)
      : file_system_(file_system), path_(std::move(path)), keys_(std::move(keys)) {}

  enum class State { kGiven, kNew, kLaunchChanged, kDescriptionChanged, kSchemaChanged };
  State Look(const std::string& server, const std::string& tool, const ToolFingerprint& now);
  // Records the approval. On success it survives a restart; failures are the disk's, and then it counts until one.
  Result<void> Give(const std::string& server, const std::string& tool, const ToolFingerprint& now);
  // Forgets all approvals of the server's tools. Failures are the disk's, and then they still count.
  Result<void> Forget(const std::string& server);

 private:
  void ReadOnce() REQUIRES(mutex_);
  Result<void> Write() REQUIRES(mutex_);
  std::string FileText() const REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  const std::shared_ptr<const KeySet> keys_;
  Mutex mutex_;
  bool read_ GUARDED_BY(mutex_) = false, damaged_ GUARDED_BY(mutex_) = false;
  std::map<std::string, std::map<std::string, ToolFingerprint>> given_ GUARDED_BY(mutex_);  // by server and tool
};

}  // namespace reprise
