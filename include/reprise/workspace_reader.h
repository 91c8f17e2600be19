#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// Workspace files that people name in a message. It reaches the files that file tools read without approval: none
// outside the workspace, none of the server's own files, no secrets. Thread-safe. Paths are relative to the workspace.
class WorkspaceReader {
 public:
  struct Query {
    std::string text{};      // valid UTF-8; any part of the path, ignoring case. Empty: any path
    std::size_t limit = 20;  // of results
    // Filters results: a path for which it returns false is left out. Called from the same thread.
    std::function<bool(const std::string& path)> accepts{};
  };
  struct Entry {
    std::string path;  // valid UTF-8, visible and typeable
    std::uint64_t size_bytes = 0;
    bool operator==(const Entry&) const = default;
  };
  struct Listing {
    std::vector<Entry> files;  // the best matches first
    bool complete = true;      // false: there may be more
  };

  virtual ~WorkspaceReader() = default;
  // Regular files, and links to them. Leaves out .gitignore's paths and other file systems. Looks at a limited number
  // of entries, for a limited time, top levels first. kIo: the workspace does not exist.
  virtual Result<Listing> Find(const Query& query) const = 0;
  // Also reads files that Find leaves out. kInvalidArgument (not a path, a directory, not a regular file), kForbidden,
  // kNotFound, kTooLarge, kIo; the messages are for people.
  virtual Result<std::string> Read(std::string_view path) const = 0;
};

}  // namespace reprise
