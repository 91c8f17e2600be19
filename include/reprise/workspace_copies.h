#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"
#include "reprise/timestamp.h"
#include "reprise/tool.h"
#include "reprise/workspace_change.h"
#include "reprise/workspace_history.h"

namespace reprise {

// What a workspace held at an earlier moment, where that differs from what it holds now.
struct PastFiles {
  struct File {
    std::string path;                      // as in WorkspaceChange
    std::optional<FileVersion> version{};  // nullopt: there was nothing
    bool is_certain = true;                // false: it counts only if the present file is newer than `at`
  };
  std::vector<File> files{};  // by path
  Timestamp at{};             // the moment
  // The content of a version; nullopt: it is not kept. Called by one thread at a time.
  std::function<std::optional<std::string>(const FileVersion& version)> content{};
};

// A private copy of a workspace, for one run. Its destructor removes the copy. Not thread-safe.
class WorkspaceCopy {
 public:
  virtual ~WorkspaceCopy() = default;
  // The tool of this name, which works in the copy and can do nothing else; null: there is none.
  virtual Tool* Find(std::string_view name) = 0;
  // Records what calls change in the copy.
  virtual RunRecorder& recorder() = 0;
  // Makes these paths what they became then. Contents that are not kept stay as they are.
  virtual void Apply(const std::vector<WorkspaceChange>& changes, const PastFiles& then) = 0;
  // What the recorder has kept, and a unified diff of a recorded change.
  virtual std::optional<std::string> ContentOf(const FileVersion& version) = 0;
  virtual std::string DiffOf(const WorkspaceChange& change) = 0;
  // `text` with the path of the copy in place of the workspace's, and the other way round.
  virtual std::string ForCopy(std::string text) const = 0;
  virtual std::string FromCopy(std::string text) const = 0;
};

// Makes copies of one workspace. Thread-safe.
//
//   auto copy = copies.Make({.at = event.at}, stop);
//   if (!copy) return Complain(copy.error().message);
//   const ToolOutcome outcome = (*copy)->Find("read_file")->Run(R"({"path":"a.txt"})", context);
class WorkspaceCopies {
 public:
  virtual ~WorkspaceCopies() = default;

  // Where calls of a tool may run without a person's approval.
  enum class Place {
    kCopy,      // in a copy, which confines them
    kAnywhere,  // they change nothing but the agent's own notes
    kNowhere,   // they act elsewhere
  };
  virtual Place PlaceOf(std::string_view tool) const = 0;
  // Copies the workspace, and gives it the files that it had. Left out are git's own files, secrets, files of the
  // server and empty folders; links are copied as links. kTooLarge: there is too much to copy, and the message says
  // what can be copied. kInvalidArgument: the copy would lie in the workspace. kStorageFull, kIo, kCancelled.
  virtual Result<std::unique_ptr<WorkspaceCopy>> Make(const PastFiles& then, const std::stop_token& stop) = 0;
};

}  // namespace reprise
