#include "store/local_run_store.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "store/store_errors.h"

namespace reprise {

class LocalRunStore::Hold final : public RunHold {
 public:
  // `journal` may be null. `claims_chat`: no other run may begin in the chat meanwhile.
  Hold(LocalRunStore& owner, InteractionRef ref, std::unique_ptr<Journal> journal, bool was_abandoned, bool claims_chat)
      : owner_(owner),
        ref_(std::move(ref)),
        journal_(std::move(journal)),
        was_abandoned_(was_abandoned),
        claims_chat_(claims_chat) {}
  ~Hold() override { Release(); }

  InteractionId id() const override { return ref_.interaction_id; }
  bool keeps_journal() const override { return journal_ != nullptr; }

  void Append(std::string_view record, Journal::Reach reach, Done done) override {
    done(journal_ ? journal_->Append(record, reach) : Result<void>());
  }

  Result<void> Finish(const Interaction& interaction) override {
    TRY(owner_.store_.SaveInteraction(interaction));
    // The process that began it may have saved it and then ended without dropping the journal.
    if (was_abandoned_) TRY(owner_.store_.DropJournal(ref_.chat_id, ref_.interaction_id));
    Release();
    return {};
  }

  Result<void> Discard() override {
    auto dropped = owner_.store_.DropJournal(ref_.chat_id, ref_.interaction_id);
    Release();
    return dropped;
  }

  void GiveBack() override {
    if (!claims_chat_.exchange(false)) return;
    const MutexLock lock(owner_.mutex_);
    owner_.held_.erase(ref_.chat_id);
    owner_.abandoned_.push_back({.ref = ref_});
  }

  void SetAside() override { Release(); }

  Result<JournalContent> ReadJournal() override { return owner_.store_.ReadJournal(ref_.chat_id, ref_.interaction_id); }

  Result<void> GoOn(const std::vector<std::string>& records) override {
    journal_ = TRY(owner_.store_.BeginJournal(ref_.chat_id, ref_.interaction_id, records));
    return {};
  }

 private:
  void Release() {
    if (claims_chat_.exchange(false)) owner_.Free(ref_.chat_id);
  }

  LocalRunStore& owner_;
  const InteractionRef ref_;
  std::unique_ptr<Journal> journal_;
  const bool was_abandoned_;
  std::atomic<bool> claims_chat_;
};

Result<std::unique_ptr<RunHold>> LocalRunStore::Begin(const RunBeginning& beginning) {
  TRY(FindAbandoned());  // first, so that this run is not taken for one of them
  TRY(Claim(beginning.chat));
  auto hold = BeginClaimed(beginning);
  if (!hold) Free(beginning.chat);
  return hold;
}

Result<void> LocalRunStore::Claim(const ChatId& chat) {
  const MutexLock lock(mutex_);
  const auto [held, is_new] = held_.try_emplace(chat, std::nullopt);
  if (!is_new) return Fail(RunsAlready(held->second));
  const auto left =
      std::ranges::find_if(abandoned_, [&](const Abandoned& each) { return each.ref.chat_id == chat && each.is_last; });
  if (left == abandoned_.end()) return {};
  held_.erase(held);
  return Fail(RunsAlready(left->ref.interaction_id));
}

Result<std::unique_ptr<RunHold>> LocalRunStore::BeginClaimed(const RunBeginning& beginning) {
  const ChatId& chat = beginning.chat;
  const auto check_head = [&]() -> Result<void> {
    const auto summary = store_.LoadSummary(chat);
    if (!summary && !IsNotFound(summary.error())) return Fail(summary.error());
    return (summary ? summary->head : std::nullopt) == *beginning.expected_head ? Result<void>() : HeadMoved();
  };
  const bool is_first = beginning.expected_head && !*beginning.expected_head;
  if (beginning.expected_head && !is_first) TRY(check_head());
  if (beginning.queued) TRY(CheckWaits(chat, *beginning.queued));
  const InteractionId id = TRY(store_.ReserveInteraction(chat));
  // The first number says that a chat has no head, without another look for its files.
  if (is_first && id.number() != 1) TRY(check_head());
  NoteNumber({chat, id});
  std::unique_ptr<Journal> journal;
  const auto begin = [&]() -> Result<void> {
    journal = TRY(store_.BeginJournal(chat, id, {}));
    return journal ? journal->Append(beginning.record, beginning.reach) : Result<void>();
  };
  if (auto begun = beginning.record.empty() ? Result<void>() : begin(); !begun) {
    static_cast<void>(store_.DropJournal(chat, id));
    return Fail(std::move(begun.error()));
  }
  if (beginning.queued) {
    if (auto taken = store_.queues().TakeQueued(chat, beginning.queued->id); !taken) {
      LogError("a started message could not be removed from the queue's file; the next change of the queue does it",
               {{"chat", chat.str()}, {"code", taken.error().reason}, {"detail", taken.error().detail}});
    }
  }
  return std::make_unique<Hold>(*this, InteractionRef{chat, id}, std::move(journal), /*was_abandoned=*/false,
                                /*claims_chat=*/true);
}

Result<void> LocalRunStore::CheckWaits(const ChatId& chat, const QueuedRef& queued) {
  for (const WaitingMessage& each : TRY(store_.queues().LoadQueue(chat))) {
    if (each.message.id != queued.id) continue;
    if (each.version == queued.version) return {};
    return Fail(Reason::kNotNext, "the message was changed meanwhile");
  }
  return Dequeued();
}

void LocalRunStore::NoteNumber(const InteractionRef& ref) {
  const MutexLock lock(mutex_);
  held_[ref.chat_id] = ref.interaction_id;
}

void LocalRunStore::Free(const ChatId& chat) {
  const MutexLock lock(mutex_);
  held_.erase(chat);
}

Result<void> LocalRunStore::FindAbandoned() {
  const MutexLock find_lock(find_mutex_);
  if (found_) return {};
  const auto unfinished = TRY(store_.ListUnfinished());
  found_ = true;
  // A chat may have several if an earlier start had to leave some.
  std::map<ChatId, InteractionId> newest;
  for (const InteractionRef& ref : unfinished) {
    const auto known = newest.try_emplace(ref.chat_id, ref.interaction_id).first;
    known->second = std::max(known->second, ref.interaction_id);
  }
  const MutexLock lock(mutex_);
  for (const InteractionRef& ref : unfinished) {
    abandoned_.push_back({.ref = ref, .is_last = newest.at(ref.chat_id) == ref.interaction_id});
  }
  return {};
}

Result<std::vector<AbandonedRun>> LocalRunStore::ClaimAbandoned(std::size_t most) {
  TRY(FindAbandoned());
  std::vector<AbandonedRun> claimed;
  const MutexLock lock(mutex_);
  while (claimed.size() < most && !abandoned_.empty()) {
    Abandoned next = std::move(abandoned_.front());
    abandoned_.pop_front();
    if (next.is_last) held_[next.ref.chat_id] = next.ref.interaction_id;
    auto hold = std::make_unique<Hold>(*this, next.ref, nullptr, /*was_abandoned=*/true, next.is_last);
    claimed.push_back({.ref = std::move(next.ref), .hold = std::move(hold), .is_last = next.is_last});
  }
  return claimed;
}

}  // namespace reprise
