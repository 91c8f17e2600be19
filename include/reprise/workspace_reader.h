#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// The files of the workspace, for people who name one in a message. It reaches what file tools reach that nobody was
// asked about: nothing outside, none of the server's own files, no secrets. Thread-safe. Paths are relative to the
// workspace.
class WorkspaceReader {
 public:
  struct Query {
    std::string text{};      // valid UTF-8; somewhere in the path, whatever the case. Empty: any path
    std::size_t limit = 20;  // of what is found
    // Asked about what would be found; no: it is not. Called from the same thread.
    std::function<bool(const std::string& path)> accepts{};
  };
  struct Entry {
    std::string path;  // valid UTF-8 that can be seen and be typed
    std::uint64_t size_bytes = 0;
    bool operator==(const Entry&) const = default;
  };
  struct Listing {
    std::vector<Entry> files;  // those that are most likely meant first
    bool complete = true;      // false: there may be more
  };

  virtual ~WorkspaceReader() = default;
  // Regular files, and links to such. Leaves out what .gitignore names and other file systems. Looks at so many entries
  // and for so long at most, those near the top first. kIo: the workspace is not there.
  virtual Result<Listing> Find(const Query& query) const = 0;
  // Also of what Find leaves out. kInvalidArgument (not a path, a directory, not a regular file), kForbidden,
  // kNotFound, kTooLarge, kIo; the messages are for people.
  virtual Result<std::string> Read(std::string_view path) const = 0;
};

}  // namespace reprise
