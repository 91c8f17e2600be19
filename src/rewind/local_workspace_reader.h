#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/workspace_reader.h"
#include "rewind/ignore_rules.h"
#include "tools/files/workspace.h"

namespace reprise {

// Walks through the workspace for each query. It caches nothing, so nothing can be stale.
class LocalWorkspaceReader final : public WorkspaceReader {
 public:
  struct Limits {
    std::uint64_t file_bytes = 10ull << 20;  // to read of a file
    std::size_t entries = 300'000;           // to look at
    std::size_t candidates = 500;            // to check and open
    std::chrono::milliseconds time{1'000};
  };
  // `workspace` must outlive it.
  LocalWorkspaceReader(const Workspace& workspace, Limits limits)
      : workspace_(workspace), limits_(limits), ignored_(workspace) {}

  Result<Listing> Find(const Query& query) const override;
  Result<std::string> Read(std::string_view path) const override;

 private:
  const Workspace& workspace_;
  const Limits limits_;
  const IgnoreFiles ignored_;
};

}  // namespace reprise
