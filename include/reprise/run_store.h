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

// A queued message, as it was read.
struct QueuedRef {
  std::string id;
  std::int64_t version = 0;
};

// How a run begins.
struct RunBeginning {
  ChatId chat;  // created if it is unknown
  // The head that the run continues; an inner nullopt means an empty chat. Unset for a run that starts elsewhere.
  std::optional<std::optional<InteractionId>> expected_head{};
  std::optional<std::int64_t> expected_version{};  // ChatHead::version, for a run that continues from there
  bool makes_chat = false;                         // the chat is unknown, and taken for a new one
  std::string record{};  // the journal's first; empty: no journal, because the run ends at once
  Journal::Reach reach = Journal::Reach::kProcess;
  std::optional<QueuedRef> queued{};  // the run's message, which leaves the queue in the same step
  bool in_line = false;               // not a queued message, but waits behind the queue
};

// A run's right to write in its chat. A chat has at most one held run, among all processes. Append is called by one
// thread at a time; later calls may come from another thread. Failures: kConflict (reason "fenced") if another holder
// has the run: nothing more of it may be written or shown. Otherwise those of InteractionStore.
class RunHold {
 public:
  // The record of an unfinished run stays as it is. `done` is not called afterwards.
  virtual ~RunHold() = default;

  virtual InteractionId id() const = 0;
  // False: the store does not outlive the process, and Append keeps nothing.
  virtual bool keeps_journal() const = 0;

  // Appends a record to the journal. `done` is called once per record, in order: when the record is as durable as
  // `reach` says, or with the failure, after which no record can be appended. It runs on any thread, perhaps within
  // this call, and must be quick. Append waits at most for the page cache, or for the disk if the store keeps files and
  // `reach` is kPowerLoss.
  using Done = std::function<void(Result<void>)>;
  virtual void Append(std::string_view record, Journal::Reach reach, Done done) = 0;

  // Whether the run is still held, as far as can be known now: the last check before a step that must not happen twice.
  // May wait for the store.
  virtual bool IsStillHeld() { return true; }
  // The same without a wait for an unavailable store: kUnavailable.
  virtual Result<bool> IsHeldNow() { return IsStillHeld(); }

  // Saves the interaction as SaveInteraction does and ends journal and run, in one step. The chat is free then, and no
  // `done` is outstanding.
  virtual Result<void> Finish(const Interaction& interaction) = 0;
  // The same without a wait: `done` gets the result, perhaps on a thread of the store, and must be quick. kConflict
  // (Reason::kFinishAgain): call Finish instead. The hold must live until then.
  virtual void FinishSoon(std::shared_ptr<const Interaction> interaction, Done done) { done(Finish(*interaction)); }
  // Ends the run as if it had never begun; its number is not used again.
  virtual Result<void> Discard() = 0;
  // Abandons the run at once: the first claimant gets it. No `done` is outstanding afterwards.
  virtual void GiveBack() = 0;
  // Frees the chat and keeps the run's record as it is, for people or for the next start.
  virtual void SetAside() = 0;

  // --- for an abandoned run -------------------------------------------------------------------------------------
  // Its record so far. kNotFound: none.
  virtual Result<JournalContent> ReadJournal() = 0;
  // Continues the journal after these records, which ReadJournal returned.
  virtual Result<void> GoOn(const std::vector<std::string>& records) = 0;
};

struct AbandonedRun {
  InteractionRef ref;
  std::unique_ptr<RunHold> hold;
  bool is_last = true;  // no later run of its chat was abandoned: this one may continue
};

// The record of a run that another process holds, or held a short while ago.
struct HeldJournal {
  JournalContent content;
  bool has_ended = false;  // no further records; the result is stored
};

// New records of such a run in order, or its end.
struct HeldNews {
  std::vector<std::string> records{};
  bool has_ended = false;          // the result is stored
  std::optional<Error> failure{};  // nothing more follows
};

// What another process wants from this one: a look at everything, or at one run.
struct Wanted {
  enum class Kind { kAnything, kStop, kAnswer };
  Kind kind = Kind::kAnything;
  std::optional<InteractionRef> run{};  // set for kStop and kAnswer
};

// A request to end a run.
struct StopRequest {
  InteractionRef run;
  std::string reason;
};

// Decides which run may write in a chat. Thread-safe. Holds must not outlive their store.
//
//   auto hold = runs.Begin({.chat = chat, .record = first_record});
//   if (!hold) return Complain(hold.error().message);  // "busy", "head_moved", ...
//   reprise::Interaction turn{.id = (*hold)->id(), .chat_id = chat, .status = reprise::InteractionStatus::kCancelled};
//   if (auto saved = (*hold)->Finish(turn); !saved) return Complain(saved.error().message);
class RunStore {
 public:
  virtual ~RunStore() = default;

  // Reserves a number, claims the chat and starts the journal with the first record, in one step; ok means the record
  // is as durable as `reach` says. kConflict: reason "busy", details {"interaction_id"}, if a run of the chat is held
  // or abandoned; "head_moved" if its head or version is not the expected one: load it again; "not_next" if messages
  // wait before it, or its own has changed: read the queue again. kGone (reason "dequeued"): its message no longer
  // waits. A store of one process does not check who is next; the process knows.
  virtual Result<std::unique_ptr<RunHold>> Begin(const RunBeginning& beginning) = 0;
  // Claims up to `most` abandoned runs for this caller alone. Empty: none now.
  virtual Result<std::vector<AbandonedRun>> ClaimAbandoned(std::size_t most) = 0;

  // --- runs of other processes. The default has none: one process owns the chats --------------------------------
  // The run of another process that holds the chat.
  virtual Result<std::optional<InteractionId>> HeldElsewhere(const ChatId&) { return std::optional<InteractionId>(); }
  // In all chats.
  virtual Result<std::vector<InteractionRef>> AllHeldElsewhere() { return std::vector<InteractionRef>(); }
  // The record of such a run so far. kNotFound: none.
  virtual Result<HeldJournal> ReadHeld(const InteractionRef&) {
    return Fail(ErrorCode::kNotFound, "no other process runs this");
  }
  // Passes the records of such a run to `heard`, from the first on: the present ones before this returns, then each new
  // one, once and in order, on any thread but one at a time; `heard` must be quick. Calls may continue for a moment
  // after the returned object is gone. The run's holder knows that it is followed. kNotFound: there is no record.
  using HeardNews = std::function<void(HeldNews)>;
  virtual Result<std::shared_ptr<void>> Follow(const InteractionRef&, HeardNews) {
    return Fail(ErrorCode::kNotFound, "no other process runs this");
  }
  // Whether another process follows a run of this process.
  virtual Result<bool> IsFollowedElsewhere(const InteractionRef&) { return false; }
  // Asks the run's holder to end it. False: the run is not held.
  virtual Result<bool> RequestStop(const InteractionRef&, std::string_view) { return false; }
  // Requests of other processes to end runs of this one.
  virtual Result<std::vector<StopRequest>> StopRequests() { return std::vector<StopRequest>(); }
  // Calls `look` when this process may have work: an abandoned run, a stop request, an answer. Calls may be
  // superfluous; a lost signal costs a second. Called by any thread, never after Watch({}) has returned; must be quick.
  virtual void Watch(std::function<void(const Wanted&)> look) { static_cast<void>(look); }
};

}  // namespace reprise
