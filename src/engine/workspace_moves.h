#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "engine/interactions.h"
#include "engine/services.h"
#include "engine/start_point.h"
#include "reprise/engine.h"
#include "reprise/file_store.h"
#include "reprise/result.h"
#include "reprise/workspace_history.h"
#include "reprise/workspace_reader.h"

namespace reprise {

// Files of the workspace that a person names in a message: those that the agent could read with read_file without
// asking. Thread-safe. kNotFound (reason "no_workspace") if this server has none.
class NamedFiles {
 public:
  explicit NamedFiles(const EngineServices& services) : services_(services) {}

  // Lists paths that contain `text`. Unreadable files are left out.
  Result<WorkspaceReader::Listing> Find(const WorkspaceParts& workspace, std::string_view text,
                                        std::size_t limit) const;
  // Reads a file as it is now, to store it with a chat. The failures of WorkspaceReader, kNotFound with reason
  // "no_such_file"; kForbidden (reason "not_readable") if the configuration forbids the agent to read it, or asks
  // first.
  Result<StoredFile> Read(const WorkspaceParts& workspace, std::string_view path) const;

 private:
  Result<void> CheckReadable(const WorkspaceParts& workspace, const std::string& path) const;

  const EngineServices& services_;
};

// Moves the workspace from one state of a chat to another, using the changes of the interactions between them. The
// states are a tree beside that of the interactions: a state that began with files kept is a child of the state the
// workspace had (RunRecord::files_from). Thread-safe.
class WorkspaceMoves {
 public:
  WorkspaceMoves(EngineServices& services, Interactions& interactions, StartPoints& start_points)
      : services_(services), interactions_(interactions), start_points_(start_points) {}

  // The interaction after which a state is; nullopt before the first one.
  using State = std::optional<InteractionId>;

  bool is_on() const { return services_.home->history != nullptr; }
  // The state in which the chat has left the workspace.
  State StandsAt(const ChatId& chat, State head) const;
  // The same for callers that know the chat's version (ChatHead::version); this seldom asks the store.
  State StandsAt(const ChatId& chat, State head, std::optional<std::int64_t> version) const;
  // A run has become the chat's head; `version` is the chat's unless somebody else has changed it.
  void RunEnded(const ChatId& chat, std::int64_t version);
  // Empty if nothing is recorded.
  Result<FilesPreview> Preview(const ChatId& chat, State head, State target) const;

  // A decided restore, before it is done.
  struct Plan {
    std::vector<RestoreStep> steps{};
    std::vector<WorkspaceChange> foreign{};  // changes by others, which are overwritten
    bool foreign_of_imported = false;        // a file's earlier content is known from an imported interaction only
  };
  // kConflict (reason "imported_files", "workspace_conflict"), kInvalidArgument (reason "no_workspace_history").
  Result<Plan> Prepare(const ChatId& chat, State head, State target, const FilesChoice& choice) const;

  // What Recover does after the files are restored, instead of `commit`.
  struct Then {
    std::optional<InteractionId> head{};  // becomes the chat's head
    bool stands = false;                  // the workspace stands at `at` while the head stays at `while_at`
    State at{}, while_at{};
  };
  // Does it. Changes by others are recorded first, as an interaction of their own. `commit` is called when the files
  // are restored; if it fails, they are put back. REQUIRES: the chat is occupied.
  Result<void> Restore(const ChatId& chat, const Plan& plan, Then then, const std::function<Result<void>()>& commit);
  // The chat's head has moved to `head`; the files were kept and stand at `at`, or were restored.
  void HeadMoved(const ChatId& chat, State at, State head);
  // A change by hand has become the head, after `before`.
  void HeadGrew(const ChatId& chat, State before, State head);
  void Recover();

  // As Engine::DiffOf.
  Result<InteractionDiff> DiffOf(const ChatId& chat, InteractionId interaction,
                                 const std::optional<std::string>& call_id) const;

 private:
  struct Target {
    std::optional<FileVersion> expected{}, wanted{};
    bool imported = false;           // the wanted content is known from an imported interaction
    bool expected_imported = false;  // the same of the expected content
  };
  struct Way {
    std::map<std::string, Target> targets{};
    std::uint64_t omitted = 0;  // further changes that were not recorded
    bool unseen = false;        // a call changed nobody knows what
  };
  // `folder` is the chat's now. kConflict (reason "workspace_moved") if it was another on the way.
  Result<Way> Between(const ChatId& chat, const std::string& folder, State from, State to) const;
  struct Planned {
    RestoreStep step;
    std::optional<FileVersion> expected{};
    std::string conflict{};
    bool can_be_forced = true;
    bool imported = false, expected_imported = false;
  };
  struct Plans {
    std::vector<Planned> files{};
    std::uint64_t omitted = 0;
    bool unseen = false;
  };
  Result<Plans> PlanFor(const ChatId& chat, State head, State target) const;
  // Contents, diffs and positions are kept with chats, so the history of any folder has them.
  WorkspaceHistory& kept() const { return *services_.home->history; }
  // Returns the new head.
  Result<InteractionId> SaveForeign(const ChatId& chat, std::vector<WorkspaceChange> foreign, bool of_imported);
  Result<void> Stand(const ChatId& chat, State at, State head);

  EngineServices& services_;
  Interactions& interactions_;
  StartPoints& start_points_;
  mutable Mutex at_head_mutex_;
  // The versions at which chats have left the workspace at their heads.
  std::unordered_map<std::string, std::int64_t> at_head_ GUARDED_BY(at_head_mutex_);
};

}  // namespace reprise
