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

// Watches one tool call. Not thread-safe.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  // The changes in the workspace since the call began; keeps the old and new content. Call it once, after the call. May
  // wait for a disk.
  virtual WorkspaceChanges Finish() = 0;
};

// Watches one run. Thread-safe.
class RunRecorder {
 public:
  virtual ~RunRecorder() = default;
  // Call it before a tool call: keeps what the call may change. The first call that may change anything takes as long
  // as reading the workspace. Null: the call changes no file, or `stop` was requested.
  virtual std::unique_ptr<CallRecorder> Begin(const ToolTraits& traits, std::string_view arguments,
                                              const std::stop_token& stop) = 0;
  // Whether the changes of such a call will be recorded. The first time it may take as long as Begin.
  virtual bool CanRecord(const ToolTraits& traits, std::string_view arguments, const std::stop_token& stop) const = 0;
  // Further changes, by programs that ran between the calls. Call it once, after the run.
  virtual WorkspaceChanges End() = 0;
};

// One path of a restore: `from`, its present version, becomes `to`.
struct RestoreStep {
  std::string path;
  std::optional<FileVersion> from{}, to{};
};

// Records workspace changes of calls, and restores files. For one tenant's chats. Thread-safe. Ignores paths named by
// .gitignore, .git itself, paths out of reach for file tools, and paths behind a symbolic link.
//
//   auto recorder = history.Record(chat, /*hooks_change=*/false);
//   auto call = recorder->Begin(tool.traits(), arguments, stop);
//   tool.Run(arguments, context);
//   if (call) Show(call->Finish().recorded);
//   Show(recorder->End().recorded);
class WorkspaceHistory {
 public:
  virtual ~WorkspaceHistory() = default;

  // `hooks_change`: hooks that run after each call may change files too.
  virtual std::unique_ptr<RunRecorder> Record(const ChatId& chat, bool hooks_change) = 0;

  // The present version of each path; kForbidden if it is out of reach. Stores blobs only if `keep`.
  struct Seen {
    Result<std::optional<FileVersion>> version;
  };
  virtual std::map<std::string, Seen> Look(const ChatId& chat, const std::vector<std::string>& paths, bool keep) = 0;
  // Whether anything below the directory `path` is not in `but`.
  virtual bool HoldsMore(const std::string& path, const std::vector<std::string>& but) = 0;

  // Does all steps, or after a kill leaves the rest to Recover. When the files are restored it calls `commit`. `then`
  // is a text of the caller, stored with the steps: Recover passes it to its own `commit` instead. If `commit` or a
  // step fails, all steps are undone, except where a file was changed meanwhile. kConflict (reason
  // "workspace_conflict", the paths in its details) if a path no longer has its `from` version. Fails before any change
  // if a content cannot be read.
  virtual Result<void> Restore(const ChatId& chat, const std::vector<RestoreStep>& steps, const std::string& then,
                               const std::function<Result<void>()>& commit) = 0;
  // Finishes the restores of an earlier process in this workspace. Call it before anything runs. Returns the paths of
  // other workspaces that have some.
  virtual std::vector<std::string> Recover(
      const std::function<Result<void>(const ChatId&, const std::string& then)>& commit) = 0;

  // The content of a kept version; none for a directory.
  virtual Result<std::string> ContentOf(const ChatId& chat, const FileVersion& version) = 0;
  // A unified diff, as git prints one; for binary or missing content it only says that the contents differ.
  virtual Result<std::string> DiffOf(const ChatId& chat, const WorkspaceChange& change) = 0;

  // The workspace's position as the engine wrote it; nullopt: none.
  virtual std::optional<std::string> Position(const ChatId& chat) = 0;
  virtual Result<void> SetPosition(const ChatId& chat, std::string_view text) = 0;
  virtual void ForgetChat(const ChatId& chat) = 0;
};

}  // namespace reprise
