#pragma once

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
#include "engine/workspace_moves.h"

namespace reprise {

// Reading chats, and arranging them while they are idle. Functions are as those of Engine. Thread-safe.
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
  Result<ChatListEntry> ListEntryOf(const ChatId& chat);
  Result<SearchResult> Search(const std::string& text, const std::optional<ChatId>& chat, std::size_t limit);
  Result<EditPreview> PreviewEdit(const ChatId& chat, InteractionId interaction);
  Result<FilesPreview> PreviewFiles(const ChatId& chat, std::optional<InteractionId> to, FilesChoice files);
  Result<AttachedEvents> Attach(const ChatId& chat, InteractionId interaction, std::uint64_t after_seq);
  Result<Agenda> GetAgenda(const ChatId& chat);
  Result<std::vector<Grant>> GetGrants(const ChatId& chat);

  // --- arranging
  Result<ChatSummary> Create(const ChatId& chat, const std::string& title);
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
  // The chat's interaction that runs, in this process or in another one, as far as it has come.
  Result<std::optional<Interaction>> Running(const ChatId& chat);
  // What is stored of a chat, together with what runs in it. `elsewhere`: the run that another process has in it.
  ChatListEntry EntryOf(ChatSummary summary, const WaitingQuestions& waiting, std::optional<InteractionId> elsewhere);
  void Changed(ChatChange::Kind kind, const ChatId& chat) { services_.changes.Add(kind, chat); }
  // A line for what a person has done that is no call.
  void Note(const AuditEntry& line);
  // REQUIRES of these: the chat is idle.
  // Also what of it waits in a fallback folder, or it would be back at the next start.
  Result<void> DeleteIdle(const ChatId& chat);
  // What a turn that follows `after` begins with.
  Result<Beginning> LoadBehind(const ChatId& chat, std::optional<InteractionId> after);
  // Saves a change by hand as an interaction of its own, which becomes the head.
  Result<Interaction> SaveChange(const ChatId& chat, Beginning changed, std::vector<EventPayload> events);
  // Where Undo goes.
  Result<InteractionId> BeforeHead(const ChatId& chat, const std::optional<InteractionId>& head) const;
  // The state before the head, which may be that before the first interaction.
  Result<std::optional<InteractionId>> StateBefore(const ChatId& chat, const std::optional<InteractionId>& head) const;
  // The head stays.
  Result<ChatSummary> PutFilesBack(const ChatId& chat, FilesChoice files);
  // Moves the head and, if that is wanted, the files.
  Result<ChatSummary> Move(const ChatId& chat, InteractionId to, FilesChoice files);
  // The chat's head, to be changed by hand.
  Result<Beginning> LoadForChange(const ChatId& chat);

  // `load(id)` gives those files that the chat lacks.
  template <typename Load>
  Result<void> PutMissingFiles(const ChatId& chat, const std::vector<FileId>& files, const Load& load) const;
  Result<void> CopyFiles(const ChatId& from, const ChatId& to) const;
  // A chat that comes in as a whole, by `take`; `put_files` adds the files that the store did not take with it.
  template <typename Take, typename PutFiles>
  Result<ChatListEntry> BringIn(const ChatId& chat, const Take& take, const PutFiles& put_files);

  // A follower of a run that another process holds; kNotFound if none does.
  Result<std::shared_ptr<RunFollower>> Follow(const InteractionRef& run);
  // "busy" if another process runs something in the chat, which is asked to stop.
  Result<void> StopElsewhere(const ChatId& chat, std::string_view reason);
  // Until what was asked of another process may have been done.
  void Pause();
  // As BusyChats::WhileIdle; "busy", too, if another process runs something in the chat.
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
  Mutex mutex_;
  std::map<std::pair<ChatId, InteractionId>, std::weak_ptr<RunFollower>> followers_ GUARDED_BY(mutex_);
};

}  // namespace reprise
