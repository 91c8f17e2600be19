#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/drift.h"
#include "reprise/event.h"
#include "reprise/file_store.h"
#include "reprise/result.h"
#include "reprise/tool.h"
#include "reprise/workspace_copies.h"
#include "reprise/workspace_history.h"

namespace reprise {

// What the workspace held when a run begins. May take a while; its failure ends the run.
using FilesThen = std::function<Result<PastFiles>()>;

// Runs the calls of one run that have no result on record: in a copy of the workspace, which is made for the first
// call that needs it. A call that would act elsewhere is refused. Records what the calls change. For one call at a
// time, on any thread.
class CallsInCopy final : public RunRecorder {
 public:
  // `agent` must outlive it. `allowed`: tools that may act elsewhere. `stop` is requested if there can be no copy.
  CallsInCopy(const PresentAgent& agent, std::vector<std::string> allowed, FilesThen then, std::stop_source stop)
      : agent_(agent),
        tools_(agent.workspace.tools.Current()),
        allowed_(std::move(allowed)),
        then_(std::move(then)),
        stop_(std::move(stop)) {}

  // Whether calls of this tool act elsewhere, and may.
  bool IsAllowed(std::string_view tool) const;
  // Call it when a call has begun: whether it runs here. If not, these are the changes that the record has of it.
  void Begun(bool runs_here, std::vector<WorkspaceChange> recorded);
  ToolOutcome Run(const std::string& tool, std::string_view arguments, const ToolContext& context);

  // RunRecorder
  std::unique_ptr<CallRecorder> Begin(const ToolTraits& traits, std::string_view arguments,
                                      const std::stop_token& stop) override;
  bool CanRecord(const ToolTraits&, std::string_view, const std::stop_token&) const override { return false; }
  WorkspaceChanges End() override { return copy_ ? copy_->recorder().End() : WorkspaceChanges(); }

  // Why there could be no copy; nullopt: there was one, or none was needed.
  const std::optional<Error>& failure() const { return failure_; }
  // Null if none was needed.
  std::unique_ptr<WorkspaceCopy> TakeCopy() { return std::move(copy_); }

 private:
  WorkspaceCopies::Place PlaceOf(std::string_view tool) const;
  WorkspaceCopy* Copy();

  const PresentAgent& agent_;
  const std::shared_ptr<const ToolSet> tools_;
  const std::vector<std::string> allowed_;
  const FilesThen then_;
  std::stop_source stop_;
  bool runs_here_ = false;  // the call under way
  std::unique_ptr<WorkspaceCopy> copy_{};
  PastFiles files_{};                        // set with copy_
  std::vector<WorkspaceChange> recorded_{};  // that the copy, once it is made, has to have
  std::optional<Error> failure_{};
};

// The files of a chat for a run that is none of the chat: it reads them and adds none.
class FilesToRead final : public FilesOfChat {
 public:
  explicit FilesToRead(FilesOfChat* files) : files_(files) {}  // null: there are none
  Result<FileListing> List() override { return files_ ? files_->List() : FileListing(); }
  Result<StoredFile> Get(const FileId& id) override {
    if (files_ == nullptr) return Fail(Reason::kNoSuchFile, "the chat has no such file");
    return files_->Get(id);
  }
  Result<FileInfo> Add(std::string_view, std::string_view, std::string) override { return Fixed(); }
  Result<void> Delete(const FileId&) override { return Fixed(); }

 private:
  static tl::unexpected<Error> Fixed() {
    return Fail(ErrorCode::kForbidden, "the chat's files stay as they are, because this run is not part of the chat");
  }

  FilesOfChat* const files_;
};

}  // namespace reprise
