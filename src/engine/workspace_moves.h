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

// Files of the workspace that a person names in a message: those that the agent could read in a call of read_file that
// nobody is asked about. Thread-safe. kNotFound (reason "no_workspace") if this server has none.
class NamedFiles {
 public:
  explicit NamedFiles(const EngineServices& services) : services_(services) {}

  // Paths with `text` in them. What cannot be read is not found.
  Result<WorkspaceReader::Listing> Find(std::string_view text, std::size_t limit) const;
  // A file as it is now, to be kept with a chat. The failures of WorkspaceReader, kNotFound with reason "no_such_file";
  // kForbidden (reason "not_readable"): the configuration does not let the agent read it, or wants it asked about.
  Result<StoredFile> Read(std::string_view path) const;

 private:
  Result<const WorkspaceReader*> Reader() const;
  Result<void> CheckReadable(const std::string& path) const;

  const EngineServices& services_;
};

// Takes the workspace from one state of a chat to another, by what the chat's interactions have changed on the way. The
// states are a tree beside that of the interactions: one that was begun with files kept hangs where the workspace stood
// (RunRecord::files_from). Thread-safe.
class WorkspaceMoves {
 public:
  WorkspaceMoves(EngineServices& services, Interactions& interactions, StartPoints& start_points)
      : services_(services), interactions_(interactions), start_points_(start_points) {}

  // After which interaction a state is; nullopt: before the first one.
  using State = std::optional<InteractionId>;

  bool is_on() const { return services_.parts.workspace_history != nullptr; }
  // The state in which the chat has left the workspace.
  State StandsAt(const ChatId& chat, State head) const;
  // The same for who knows the version of the chat (ChatHead::version), and seldom has to ask the store then.
  State StandsAt(const ChatId& chat, State head, std::optional<std::int64_t> version) const;
  // A run has become the head of the chat, which has this version if nobody else has changed it.
  void RunEnded(const ChatId& chat, std::int64_t version);
  // Empty where nothing is recorded.
  Result<FilesPreview> Preview(const ChatId& chat, State head, State target) const;

  // What a restore will do; decided, and nothing is done yet.
  struct Plan {
    std::vector<RestoreStep> steps{};
    std::vector<WorkspaceChange> foreign{};  // what others have changed, which is overwritten
    bool foreign_of_imported = false;        // what one of them was before is known from an imported interaction
  };
  // kConflict (reason "imported_files", "workspace_conflict"), kInvalidArgument (reason "no_workspace_history").
  Result<Plan> Prepare(const ChatId& chat, State head, State target, const FilesChoice& choice) const;

  // What Recover does after the files, in place of what was called for it.
  struct Then {
    std::optional<InteractionId> head{};  // becomes the chat's
    bool stands = false;                  // else: the workspace stands at `at` while the head stays where it is
    State at{}, while_at{};
  };
  // Does it. What others have changed is recorded first, as an interaction of its own. `commit` is called when the
  // files are as they should be; if it fails, they are as they were. REQUIRES: the chat is occupied.
  Result<void> Restore(const ChatId& chat, const Plan& plan, Then then, const std::function<Result<void>()>& commit);
  // Of a chat whose head was moved to `head`: its files were kept and stand at `at`, or were restored.
  void HeadMoved(const ChatId& chat, State at, State head);
  // A change by hand has become the head, behind `before`.
  void HeadGrew(const ChatId& chat, State before, State head);
  void Recover();

  // As Engine::DiffOf.
  Result<InteractionDiff> DiffOf(const ChatId& chat, InteractionId interaction,
                                 const std::optional<std::string>& call_id) const;

 private:
  struct Target {
    std::optional<FileVersion> expected{}, wanted{};
    bool imported = false;           // what is wanted is known from an imported interaction
    bool expected_imported = false;  // likewise what is expected
  };
  struct Way {
    std::map<std::string, Target> targets{};
    std::uint64_t omitted = 0;  // further changes, of which nothing is recorded
  };
  Result<Way> Between(const ChatId& chat, State from, State to) const;
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
  };
  Result<Plans> PlanFor(const ChatId& chat, State head, State target) const;
  // Gives the new head.
  Result<InteractionId> SaveForeign(const ChatId& chat, std::vector<WorkspaceChange> foreign, bool of_imported);
  Result<void> Stand(const ChatId& chat, State at, State head);

  EngineServices& services_;
  Interactions& interactions_;
  StartPoints& start_points_;
  mutable Mutex at_head_mutex_;
  // Versions at which chats have left the workspace at their heads.
  std::unordered_map<std::string, std::int64_t> at_head_ GUARDED_BY(at_head_mutex_);
};

}  // namespace reprise
