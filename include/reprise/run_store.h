#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/journal.h"
#include "reprise/result.h"

namespace reprise {

// A message of a chat's queue, as it was read.
struct QueuedRef {
  std::string id;
  std::int64_t version = 0;
};

// How a run begins.
struct RunBeginning {
  ChatId chat;  // created if it is unknown
  // The head that it goes on from, nullopt in it: of an empty chat. The outer one is empty for a run that begins
  // anywhere else.
  std::optional<std::optional<InteractionId>> expected_head{};
  std::optional<std::int64_t> expected_version{};  // ChatHead::version, of a run that goes on from there
  bool makes_chat = false;                         // it is taken for a new one, as nothing is known of it
  std::string record{};  // the journal's first; empty: it keeps no journal, as it ends at once
  Journal::Reach reach = Journal::Reach::kProcess;
  std::optional<QueuedRef> queued{};  // the message that it is, which leaves the queue in the same step
  bool in_line = false;               // it is none, and waits if others do
};

// A run's right to write in its chat. At most one run of a chat is held, anywhere. Append is called by one thread at a
// time; what is called after it may come from another thread.
//
// Failures of all: kConflict (reason "fenced") when somebody else holds the run now: nothing more of it may be written
// or shown. Otherwise those of InteractionStore.
class RunHold {
 public:
  // What is kept of a run that has not ended stays as it is. No `done` is called afterwards.
  virtual ~RunHold() = default;

  virtual InteractionId id() const = 0;
  // False: the store outlives no process, and Append keeps nothing.
  virtual bool keeps_journal() const = 0;

  // Appends a record to the journal. `done` is called once, in the order of the records, when it reaches as far as was
  // asked, or with why it does not: then nothing more can be appended. On whatever thread, perhaps within this call; it
  // must be quick. This waits for a page cache at most, or for a disk if the store keeps files and kPowerLoss is asked
  // for.
  using Done = std::function<void(Result<void>)>;
  virtual void Append(std::string_view record, Journal::Reach reach, Done done) = 0;

  // Whether the run is held still, as far as can be known now: asked last before something is done that must not be
  // done twice. May wait for the store.
  virtual bool IsStillHeld() { return true; }
  // The same, for who does not wait until the store is back: kUnavailable.
  virtual Result<bool> IsHeldNow() { return IsStillHeld(); }

  // Saves the interaction as SaveInteraction does and ends journal and run, in one step. The chat is free then.
  // Afterwards no `done` is outstanding.
  virtual Result<void> Finish(const Interaction& interaction) = 0;
  // The same, but it need not wait: `done` is told, perhaps on a thread of the store, where it must be quick. kConflict
  // (reason kFinishAgain): it takes more than that, and Finish has to be called. The hold must live until then.
  static constexpr const char* kFinishAgain = "finish_again";
  virtual void FinishSoon(std::shared_ptr<const Interaction> interaction, Done done) { done(Finish(*interaction)); }
  // Ends the run as if it had never begun; its number is not used again.
  virtual Result<void> Discard() = 0;
  // The run is abandoned at once: whoever asks first takes it up. Afterwards no `done` is outstanding.
  virtual void GiveBack() = 0;
  // The chat is free, and what is kept of the run stays as it is, for people to look at, or for the next start.
  virtual void SetAside() = 0;

  // --- of a run that was abandoned ------------------------------------------------------------------------------
  // What it had kept. kNotFound: nothing.
  virtual Result<JournalContent> ReadJournal() = 0;
  // From now on records can be appended behind these, which are those that ReadJournal gave.
  virtual Result<void> GoOn(const std::vector<std::string>& records) = 0;
};

struct AbandonedRun {
  InteractionRef ref;
  std::unique_ptr<RunHold> hold;
  bool is_last = true;  // no later run of its chat was abandoned: this one may go on
};

// What is kept of a run that another process holds, or held a short while ago.
struct HeldJournal {
  JournalContent content;
  bool has_ended = false;  // then that is all, and the rest of it is stored
};

// What is new of such a run: records in their order, or its end.
struct HeldNews {
  std::vector<std::string> records{};
  bool has_ended = false;          // the rest of it is stored
  std::optional<Error> failure{};  // nothing more is told
};

// What others may want of this process: look at everything, or at one run of it.
struct Wanted {
  enum class Kind { kAnything, kStop, kAnswer };
  Kind kind = Kind::kAnything;
  std::optional<InteractionRef> run{};  // with the other two
};

// Somebody wants a run to end.
struct StopRequest {
  InteractionRef run;
  std::string reason;
};

// Which run may write in a chat. Thread-safe. Holds must not outlive their store.
class RunStore {
 public:
  virtual ~RunStore() = default;

  // Reserves a number, claims the chat for it and begins its journal with the first record, in one step; when it
  // returns ok the record reaches as far as was asked. kConflict: reason "busy", details {"interaction_id"}, if a run
  // of the chat is held or abandoned; "head_moved" if its head or version is not what was expected: to be loaded again;
  // "not_next" if messages wait before it, or its own is another one now: the queue is to be read again. kGone (reason
  // "dequeued"): its message does not wait any more. Where one process has the chats, who is next it knows itself.
  virtual Result<std::unique_ptr<RunHold>> Begin(const RunBeginning& beginning) = 0;
  // Claims up to `most` abandoned runs, each of which nobody else gets then. Empty: there are none now.
  virtual Result<std::vector<AbandonedRun>> ClaimAbandoned(std::size_t most) = 0;

  // --- runs that other processes hold. As it stands here there are none: the chats are one process's own -----------
  // The run that holds the chat and is none of this process's.
  virtual Result<std::optional<InteractionId>> HeldElsewhere(const ChatId&) { return std::optional<InteractionId>(); }
  // Of all chats.
  virtual Result<std::vector<InteractionRef>> AllHeldElsewhere() { return std::vector<InteractionRef>(); }
  // What is kept so far of such a run. kNotFound: nothing.
  virtual Result<HeldJournal> ReadHeld(const InteractionRef&) {
    return Fail(ErrorCode::kNotFound, "no other process runs this");
  }
  // Tells what is kept of such a run, from its first record on: what there is now before this returns, and then
  // whatever comes, each once and in order, on any thread but one at a time; `heard` must be quick. As long as the
  // returned object lives, and a moment longer. Whoever holds the run knows that somebody follows it. kNotFound:
  // nothing is kept of it.
  using HeardNews = std::function<void(HeldNews)>;
  virtual Result<std::shared_ptr<void>> Follow(const InteractionRef&, HeardNews) {
    return Fail(ErrorCode::kNotFound, "no other process runs this");
  }
  // Whether a run of this process is followed at another one.
  virtual Result<bool> IsFollowedElsewhere(const InteractionRef&) { return false; }
  // Asks whoever holds the run to end it. False: nobody does.
  virtual Result<bool> RequestStop(const InteractionRef&, std::string_view) { return false; }
  // What others have asked of the runs of this process.
  virtual Result<std::vector<StopRequest>> StopRequests() { return std::vector<StopRequest>(); }
  // Calls `look` when there may be something for this process: an abandoned run, a request to stop, an answer. Too
  // often rather than too seldom; a signal that was lost costs a second. Called by any thread, never after Watch({})
  // has returned; must be quick.
  virtual void Watch(std::function<void(const Wanted&)> look) { static_cast<void>(look); }
};

}  // namespace reprise
