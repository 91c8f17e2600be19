#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/ids.h"
#include "reprise/result.h"
#include "reprise/tool.h"
#include "reprise/workspace_change.h"

namespace reprise {

// Watches one call of a tool. Not thread-safe.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  // What has changed in the workspace since the call began; what it was and is now is kept. Once, when the call has
  // ended. May wait for a disk.
  virtual WorkspaceChanges Finish() = 0;
};

// Watches one run. Thread-safe.
class RunRecorder {
 public:
  virtual ~RunRecorder() = default;
  // Before a call runs: keeps what it may change. The first one that may change anything takes as long as reading the
  // workspace does. Null: the call changes no file.
  virtual std::unique_ptr<CallRecorder> Begin(const ToolTraits& traits, std::string_view arguments,
                                              const std::stop_token& stop) = 0;
  // What has changed besides, by programs that went on between the calls. Once, when the run has ended.
  virtual WorkspaceChanges End() = 0;
};

// One path of a restore: what is there now becomes `to`.
struct RestoreStep {
  std::string path;
  std::optional<FileVersion> from{}, to{};
};

// Knows what calls change in the workspace, and puts it back. Of one tenant's chats. Thread-safe.
//
// What .gitignore names, .git itself, what is out of reach for file tools and what lies behind a symbolic link is
// neither looked at nor touched.
class WorkspaceHistory {
 public:
  virtual ~WorkspaceHistory() = default;

  // `hooks_change`: programs that run after each call may change files too.
  virtual std::unique_ptr<RunRecorder> Record(const ChatId& chat, bool hooks_change) = 0;

  // What is there now; a path that is out of reach is kForbidden. Only `keep` makes blobs of it.
  struct Seen {
    Result<std::optional<FileVersion>> version;
  };
  virtual std::map<std::string, Seen> Look(const ChatId& chat, const std::vector<std::string>& paths, bool keep) = 0;
  // Whether `path` is a directory in which there is something that is none of `but`.
  virtual bool HoldsMore(const std::string& path, const std::vector<std::string>& but) = 0;

  // Does all steps: as a whole, even if the process is killed, as then Recover goes on with them. `then`, a text of the
  // caller's, is kept with them; `commit` is called when the files are as they should be, and Recover gives `then` to
  // its caller in its place. What stands there by now instead of `from` is left alone and logged. Fails before anything
  // is touched if a content cannot be read.
  virtual Result<void> Restore(const ChatId& chat, const std::vector<RestoreStep>& steps, const std::string& then,
                               const std::function<Result<void>()>& commit) = 0;
  // Finishes what an earlier process has left. Call it before anything runs.
  virtual void Recover(const std::function<Result<void>(const ChatId&, const std::string& then)>& commit) = 0;

  // The content of a version that is kept; of a directory none.
  virtual Result<std::string> ContentOf(const ChatId& chat, const FileVersion& version) = 0;
  // The change as a unified diff, as git prints one; says that contents differ where they are not text, or not kept.
  virtual Result<std::string> DiffOf(const ChatId& chat, const WorkspaceChange& change) = 0;

  // Where the workspace stands, as the engine has written it; nullopt: nowhere in particular.
  virtual std::optional<std::string> Position(const ChatId& chat) = 0;
  virtual Result<void> SetPosition(const ChatId& chat, std::string_view text) = 0;
  virtual void ForgetChat(const ChatId& chat) = 0;
};

}  // namespace reprise
