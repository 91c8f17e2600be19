#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "reprise/tool.h"
#include "tools/tool_options.h"

namespace reprise {

class Workspace;

// The tools that use files of the workspace or run programs there.
inline constexpr std::array<std::string_view, 12> kWorkspaceTools{
    "list_files",  "read_file",   "find_files", "search_files", "write_file", "edit_file",
    "apply_patch", "delete_file", "run_shell",  "run_code",     "read_job",   "stop_job"};

// The built-in tools (echo calculator current_time list_files read_file find_files search_files write_file edit_file
// delete_file run_shell run_code read_job stop_job http_get list_chat_files read_chat_file save_chat_file
// delete_chat_file ask_human manage_tasks update_plan present_plan research recall), followed by those of other
// programs, as far as the options allow them.
// Construction is cheap: the workspace and the sandbox are touched only when used.
class ToolCatalog final : public ToolRegistry {
 public:
  explicit ToolCatalog(ToolOptions options);
  ~ToolCatalog() override;

  std::shared_ptr<const ToolSet> Current() const override;
  std::shared_ptr<const ToolSet> With(const std::vector<std::shared_ptr<Tool>>& more) const override;
  std::vector<ToolServer> Servers() const override;

  // For models: where tools work, and what commands may do there. Empty without a workspace. The same all the time.
  std::string DescribeEnvironment() const;

  // The tools' workspace; lives as long as the catalog.
  const Workspace& workspace() const { return *workspace_; }

  // Sets the state and the tools of the server with this name (fills in its `tools`). Omits tools whose name is taken.
  // Their schemas are not trusted.
  void SetServer(ToolServer server, std::vector<std::shared_ptr<Tool>> tools, UnlistedTool unlisted = {});
  // No effect if there is none of this name.
  void RemoveServer(const std::string& name);

 private:
  struct Offer;
  class FixedToolSet;
  struct Source {
    ToolServer server;
    std::vector<Offer> offers;
    UnlistedTool unlisted;
  };

  ToolCatalog(ToolOptions options, const std::vector<std::string>& secret_paths);

  bool IsAllowed(const std::string& name) const;
  bool MustAsk(const std::string& name) const;
  Offer ForeignOffer(std::shared_ptr<Tool> tool) const;
  std::shared_ptr<FixedToolSet> MakeSet() const REQUIRES(mutex_);

  const ToolOptions options_;
  const std::shared_ptr<Workspace> workspace_;
  std::vector<Offer> builtin_;  // constant after construction

  mutable Mutex mutex_;
  std::vector<Source> sources_ GUARDED_BY(mutex_);
  std::shared_ptr<const ToolSet> current_ GUARDED_BY(mutex_);  // replaced, never changed
};

}  // namespace reprise
