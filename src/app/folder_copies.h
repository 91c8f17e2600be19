#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/mutex.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/transport.h"
#include "reprise/workspace_copies.h"
#include "tools/files/workspace.h"
#include "tools/tool_options.h"

namespace reprise {

// Copies of a workspace folder in private folders of the system's folder for temporary files. A copy is removed with
// its object; one that a killed process left is removed when the next is made. Thread-safe.
class FolderCopies final : public WorkspaceCopies {
 public:
  struct Limits {
    std::uint64_t bytes = 512ull << 20;
    std::size_t files = 50'000;
  };
  // `workspace` is the folder's, and `options` are those of its tools. Both references must outlive this.
  FolderCopies(const Workspace& workspace, ToolOptions options, Limits limits);

  Place PlaceOf(std::string_view tool) const override;
  Result<std::unique_ptr<WorkspaceCopy>> Make(const PastFiles& then, const std::stop_token& stop) override;

 private:
  const Workspace& workspace_;
  const ToolOptions options_;
  const Limits limits_;
  Mutex mutex_;
  bool has_swept_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
