#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/services.h"
#include "reprise/file_store.h"
#include "reprise/result.h"
#include "reprise/workspace_reader.h"

namespace reprise {

// Files of the workspace that a person names in a message: those that the agent could read in a call of read_file that
// nobody is asked about. Thread-safe. kNotFound (reason "no_workspace") if this server has none.
class NamedFiles {
 public:
  explicit NamedFiles(const EngineServices& services) : services_(services) {}

  // Paths with `text` in them. What cannot be read is not found.
  Result<WorkspaceReader::Listing> Find(std::string_view text, std::size_t limit) const;
  // A file as it is now, to be kept with a chat. The failures of WorkspaceReader, kNotFound with reason "no_such_file";
  // kForbidden (reason "not_readable"): the configuration does not let the agent read it, or wants it asked about.
  Result<StoredFile> Read(std::string_view path) const;

 private:
  Result<const WorkspaceReader*> Reader() const;
  Result<void> CheckReadable(const std::string& path) const;

  const EngineServices& services_;
};

}  // namespace reprise
