#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/workspace_folders.h"
#include "approval/rules.h"
#include "base/posix_file_system.h"
#include "engine/drift.h"
#include "net/curl_transport.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

class SandboxedReader;

// The agent as a server with these options would run it, for comparisons with records: connects to nothing, starts no
// MCP server and runs no tool. Logs which files cannot be a part of the prompt, once for each. Not thread-safe.
class PresentFolders {
 public:
  // `rules`: in place of those of the configurations; null: those. `transport` sends the models' requests and must
  // outlive the object; null: one of its own. kInvalidArgument as MakeModels.
  static Result<std::unique_ptr<PresentFolders>> Open(const Options& options, ToolRules rules = nullptr,
                                                      Transport* transport = nullptr);
  ~PresentFolders();

  // The agent in the folder with this path; empty: in the options' own. Its parts live as long as this object.
  // kNotFound (reason "no_such_workspace"): there is no such folder; the failures of WorkspaceFolder::Open.
  Result<PresentAgent> At(const std::string& path);

 private:
  struct Opened;
  PresentFolders(const Options& options, ToolRules rules, Transport* transport);
  PresentAgent AgentIn(const Opened& opened) const;

  const Options options_;
  const ToolRules rules_;
  PosixFileSystem disk_;
  const std::unique_ptr<CurlTransport> own_transport_;  // null: another is used
  Transport& transport_;
  const std::vector<std::shared_ptr<Tool>> no_tools_{};
  std::unique_ptr<ModelDirectory> models_;
  std::unique_ptr<SandboxedReader> documents_;
  std::map<std::string, std::unique_ptr<Opened>> opened_;  // by path
};

}  // namespace reprise
