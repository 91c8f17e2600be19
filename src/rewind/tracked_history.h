#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reprise/blob_store.h"
#include "reprise/workspace_history.h"
#include "rewind/workspace_tracker.h"

namespace reprise {

// The history of one tenant's chats in a workspace that other tenants may use too, so the tracker is shared.
class TrackedHistory final : public WorkspaceHistory {
 public:
  // Both must outlive it. `shared` if servers on other machines use the same blobs with their own workspaces.
  TrackedHistory(WorkspaceTracker& tracker, BlobStore& blobs, bool shared)
      : tracker_(tracker), blobs_(blobs), shared_(shared) {}

  std::unique_ptr<RunRecorder> Record(const ChatId& chat, bool hooks_change) override;
  std::map<std::string, Seen> Look(const ChatId& chat, const std::vector<std::string>& paths, bool keep) override;
  bool HoldsMore(const std::string& path, const std::vector<std::string>& but) override;
  Result<void> Restore(const ChatId& chat, const std::vector<RestoreStep>& steps, const std::string& then,
                       const std::function<Result<void>()>& commit) override;
  std::vector<std::string> Recover(
      const std::function<Result<void>(const ChatId&, const std::string& then)>& commit) override;
  Result<std::string> ContentOf(const ChatId& chat, const FileVersion& version) override;
  Result<std::string> DiffOf(const ChatId& chat, const WorkspaceChange& change) override;
  std::optional<std::string> Position(const ChatId& chat) override;
  Result<void> SetPosition(const ChatId& chat, std::string_view text) override;
  void ForgetChat(const ChatId& chat) override;

 private:
  // `going_on` if some of the steps may be done already. Returns those whose files were changed meanwhile and are left
  // as they are. There may be others then that were not done, unless it is going on.
  using Left = std::vector<RestoreStep>;
  Result<Left> Apply(const ChatId& chat, const std::vector<RestoreStep>& steps, const std::string& staging,
                     bool going_on);
  struct Todo;
  // `is_as_read` is asked before a file is removed or replaced; false: it is left as it is.
  Result<void> Work(const ChatId& chat, std::vector<Todo>& todo, const std::string& staging, bool sync,
                    const std::function<bool(Todo&)>& is_as_read);
  void Sync(std::size_t steps) const;

  WorkspaceTracker& tracker_;
  BlobStore& blobs_;
  const bool shared_;
};

}  // namespace reprise
