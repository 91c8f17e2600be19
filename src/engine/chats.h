#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/try.h"
#include "engine/answers.h"
#include "engine/interactions.h"
#include "engine/run_follower.h"
#include "engine/services.h"
#include "engine/start_point.h"
#include "engine/text_pieces.h"
#include "engine/workspace_moves.h"

namespace reprise {

class TextSearch;

// Reads chats, and changes them while they are idle. The functions work as those of Engine. Thread-safe.
class Chats {
 public:
  Chats(EngineServices& services, BusyChats& busy, Interactions& interactions, StartPoints& start_points,
        const Answers& answers, WorkspaceMoves& workspace)
      : services_(services),
        busy_(busy),
        interactions_(interactions),
        start_points_(start_points),
        answers_(answers),
        workspace_(workspace) {}

  // --- reading
  Result<History> GetHistory(const ChatId& chat, bool all_branches);
  Result<std::unique_ptr<HistoryReader>> ReadHistory(const ChatId& chat, const HistoryRange& range,
                                                     HistoryStates states);
  Result<std::vector<ChatListEntry>> List();
  Result<ChatListPage> ListPage(const std::optional<ChatPlace>& after, std::size_t limit);
  Result<ChatListEntry> ListEntryOf(const ChatId& chat);
  Result<SearchResult> Search(const std::string& text, const std::optional<ChatId>& chat, std::size_t limit);
  Result<EditPreview> PreviewEdit(const ChatId& chat, InteractionId interaction);
  Result<FilesPreview> PreviewFiles(const ChatId& chat, std::optional<InteractionId> to, FilesChoice files);
  Result<AttachedEvents> Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq);
  Result<std::vector<Job>> ListJobs(const ChatId& chat);
  Result<Agenda> GetAgenda(const ChatId& chat);
  Result<std::vector<Grant>> GetGrants(const ChatId& chat);

  // --- arranging
  Result<ChatSummary> Create(const ChatId& chat, ChatSettings settings);
  // As Workspaces::Choose.
  Result<std::string> Choose(const std::string& workspace) const;
  // Makes the chat with this folder (StartRequest::workspace), unless it works there already.
  Result<void> WorkIn(const ChatId& chat, const std::string& workspace);
  Result<ChatSummary> Change(const ChatId& chat, ChatSettings settings);
  Result<ChatSummary> MoveHead(const ChatId& chat, InteractionId interaction, FilesChoice files);
  Result<void> Delete(const ChatId& chat);
  Result<std::vector<InteractionId>> RemoveBranch(const ChatId& chat, InteractionId from);
  Result<ChatSummary> Restore(std::string_view entry);
  Result<Agenda> ChangeAgenda(const ChatId& chat, AgendaChange change);
  Result<void> RevokeGrant(const ChatId& chat, std::string_view id);
  Result<ChatSummary> Undo(const ChatId& chat, FilesChoice files);
  Result<ChatListEntry> Fork(const ChatId& source, InteractionId interaction, const ChatId& chat,
                             const std::optional<std::string>& title, FilesChoice files);
  Result<ChatListEntry> Import(const IncomingChat& chat);
  Result<InteractionId> AddTurns(const ChatId& chat, std::optional<InteractionId> after,
                                 std::optional<InteractionId> edited_from, const std::vector<SpokenTurn>& turns);

 private:
  using SteadyClock = std::chrono::steady_clock;
  // With its running interaction, which is the leaf then.
  struct Whole {
    Chat chat;
    std::optional<InteractionId> leaf;
  };
  Result<Whole> LoadWhole(const ChatId& chat);
  // The chat's running interaction so far, in this process or another one.
  Result<std::optional<Interaction>> Running(const ChatId& chat);
  // Adds the matches of `search`, for `text`, in one chat.
  void SearchIn(ChatSummary chat, const TextSearch& search, SteadyClock::time_point until, SearchResult& result);
  // `runs` are those before the summaries were loaded. What a run saved that has ended since, its summary may lack, so
  // that one is loaded again.
  Result<std::vector<ChatListEntry>> EntriesOf(std::vector<ChatSummary> summaries,
                                               const std::vector<std::shared_ptr<Run>>& runs);
  // Joins the stored summary with the chat's run. `elsewhere` is the run of another process in it.
  ChatListEntry EntryOf(ChatSummary summary, const std::shared_ptr<Run>& run, const WaitingQuestions& waiting,
                        std::optional<InteractionId> elsewhere);
  void Changed(ChatChange::Kind kind, const ChatId& chat) { services_.changes.Add(kind, chat); }
  // Writes an audit line for an act of a person that is no call.
  // REQUIRES, from here to LoadForChange: the chat is idle.
  // Also deletes its checkpoints in fallback folders, because the next start would bring them back.
  Result<void> DeleteIdle(const ChatId& chat);
  // Loads the beginning of a turn that follows `after`.
  Result<Beginning> LoadBehind(const ChatId& chat, std::optional<InteractionId> after);
  // Saves a change by hand as an interaction of its own, which becomes the head.
  Result<Interaction> SaveChange(const ChatId& chat, Beginning changed, std::vector<EventPayload> events);
  // The target of Undo.
  Result<InteractionId> BeforeHead(const ChatId& chat, const std::optional<InteractionId>& head) const;
  // The state before the head; nullopt if that is before the first interaction.
  Result<std::optional<InteractionId>> StateBefore(const ChatId& chat, const std::optional<InteractionId>& head) const;
  // Restores the files of the state before the head; the head stays.
  Result<ChatSummary> PutFilesBack(const ChatId& chat, FilesChoice files);
  // Moves the head and, if chosen, the files.
  Result<ChatSummary> Move(const ChatId& chat, InteractionId to, FilesChoice files);
  // Loads the chat's head for a change by hand.
  Result<Beginning> LoadForChange(const ChatId& chat);
  Result<void> Settle(const ChatId& chat, ChatSettings& settings) const;

  // Stores those of `files` that the chat lacks; `load(id)` reads one.
  template <typename Load>
  Result<void> PutMissingFiles(const ChatId& chat, const std::vector<FileId>& files, const Load& load) const;
  Result<void> CopyFiles(const ChatId& from, const ChatId& to) const;
  // Takes in a whole chat with `take`; `put_files` adds the files that the store did not take with it.
  template <typename Take, typename PutFiles>
  Result<ChatListEntry> BringIn(const ChatId& chat, const Take& take, const PutFiles& put_files);

  // A follower of a run that another process holds; kNotFound if no process holds it.
  Result<std::shared_ptr<RunFollower>> Follow(const InteractionRef& run);
  // "busy" if another process has a run in the chat; that run is asked to stop.
  Result<void> StopElsewhere(const ChatId& chat, std::string_view reason);
  // Gives another process time to do what it was asked.
  void Pause();
  // Like BusyChats::WhileIdle; also "busy" if another process has a run in the chat.
  template <typename Change>
  auto WhileIdleEverywhere(const ChatId& chat, Change change) -> decltype(change()) {
    return busy_.WhileIdle(chat, [&]() -> decltype(change()) {
      if (const auto elsewhere = TRY(services_.parts.runs.HeldElsewhere(chat))) return Fail(Busy(elsewhere));
      return change();
    });
  }

  EngineServices& services_;
  BusyChats& busy_;
  Interactions& interactions_;
  StartPoints& start_points_;
  const Answers& answers_;
  WorkspaceMoves& workspace_;
  SearchedChats searched_;
  Mutex mutex_;
  std::map<std::pair<ChatId, InteractionId>, std::weak_ptr<RunFollower>> followers_ GUARDED_BY(mutex_);
};

}  // namespace reprise
