#pragma once

#include <memory>
#include <string>

#include "reprise/hooks.h"
#include "reprise/project_instructions.h"
#include "reprise/result.h"
#include "reprise/system_prompt.h"
#include "reprise/tool.h"
#include "reprise/workspace_history.h"
#include "reprise/workspace_reader.h"

namespace reprise {

struct FolderSettings;
class WorkspaceCopies;

// What an engine has of one folder in which agents work. All of it lives as long as the object.
struct WorkspaceParts {
  std::string path{};  // absolute, free of symbolic links; empty: the agents have no folder
  const ToolRegistry& tools;
  PromptSource prompt{};
  WorkspaceHistory* history = nullptr;          // null: changes are not recorded
  const WorkspaceReader* reader = nullptr;      // null: people cannot name files
  ProjectInstructions* instructions = nullptr;  // null: none. For clients; the prompt holds those in use
  Hooks* hooks = nullptr;
  const FolderSettings* settings = nullptr;  // null: the engine's own
  WorkspaceCopies* copies = nullptr;         // of the folder; null: none can be made
};

// The folders in which chats may work. What belongs to one is made when it is first used, and kept for a while
// afterwards. Thread-safe.
//
//   const auto path = workspaces.Choose("/home/ann/site");
//   if (!path) return Complain(path.error().message);
//   const auto workspace = workspaces.Open(*path);  // keep it while its tools are used
class Workspaces {
 public:
  virtual ~Workspaces() = default;
  // The path of this folder for the record of a chat: absolute, free of symbolic links. kInvalidArgument (reason
  // "invalid_member"): `path` is not absolute. kNotFound (reason "no_such_workspace"): there is no such folder.
  // kForbidden (reason "workspace_not_allowed"): no chat may work there.
  virtual Result<std::string> Choose(const std::string& path) = 0;
  // `path` is from Choose, perhaps of an earlier process. Fails as Choose does if the folder has gone, has become a
  // link, or is not allowed any more. Also fails if the folder's configuration is not trusted (kForbidden, reason
  // "untrusted") or wrong (kInvalidArgument, reason "invalid_config"): it is read anew each time.
  virtual Result<std::shared_ptr<const WorkspaceParts>> Open(const std::string& path) = 0;
};

}  // namespace reprise
