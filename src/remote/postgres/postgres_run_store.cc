#include "remote/postgres/postgres_run_store.h"

#include <algorithm>
#include <atomic>
#include <deque>

#include "base/logging.h"
#include "base/mutex.h"
#include "base/system.h"
#include "base/try.h"
#include "store/file_journal.h"
#include "store/store_errors.h"

namespace reprise {
namespace {

const char* CommitFor(Journal::Reach reach) { return reach == Journal::Reach::kPowerLoss ? "on" : "off"; }

}  // namespace

// In the form that PostgreSQL reads as a uuid, and known to the lease.
PostgresRunStore::Token PostgresRunStore::MakeToken() {
  std::string text = RandomHex(16);
  auto kept = lease_.Keep(text);
  return {.text = std::move(text), .kept = std::move(kept), .deaths = lease_.deaths()};
}

class PostgresRunStore::Hold final : public RunHold {
 public:
  // For a run that was claimed: `journal` is null until GoOn.
  Hold(PostgresRunStore& owner, InteractionRef ref, Token token, std::unique_ptr<JournalText> journal, int epoch)
      : owner_(owner),
        ref_(std::move(ref)),
        token_(std::move(token.text)),
        kept_token_(std::move(token.kept)),
        deaths_(token.deaths),
        key_{owner_.store_.tenant(), ref_},
        followers_(owner_.signals_.Own(key_)),
        epoch_(epoch),
        journal_(std::move(journal)) {}
  // For one that began here: `journal` is null if it keeps none.
  Hold(PostgresRunStore& owner, InteractionRef ref, Token token, std::unique_ptr<JournalText> journal)
      : Hold(owner, std::move(ref), std::move(token), std::move(journal), /*epoch=*/1) {
    row_ = 1;
  }
  ~Hold() override { AwaitAll(); }

  InteractionId id() const override { return ref_.interaction_id; }
  bool keeps_journal() const override { return journal_ != nullptr; }

  void Append(std::string_view record, Journal::Reach reach, Done done) override {
    std::string bytes;
    if (auto sealed = journal_->Append(bytes, record, reach); !sealed) return done(Fail(std::move(sealed.error())));
    const int row = row_++;
    std::string copy;
    {
      const MutexLock lock(mutex_);
      ++under_way_;
      copy = bytes;
      unsynced_.push_back({.row = row, .bytes = std::move(bytes), .reach = reach});
    }
    owner_.writer_->Add({.key = key_, .token = token_, .row = row, .bytes = std::move(copy), .reach = reach},
                        [this, row, done = std::move(done)](bool is_kept) mutable {
                          is_kept ? Kept(row, done) : Send(row, /*was_lost=*/false, std::move(done));
                        });
  }

  // While the lease is fresh, and was so all the time, no other instance can have taken the run; else the database
  // knows.
  bool IsStillHeld() override { return LookWhetherHeld(/*is_patient=*/true).value_or(false); }
  Result<bool> IsHeldNow() override { return LookWhetherHeld(/*is_patient=*/false); }

  Result<void> Finish(const Interaction& interaction) override {
    AwaitAll();
    auto saved = owner_.store_.FinishRun(interaction, token_, sealed_);
    owner_.signals_.TellNews(*followers_, key_);
    return saved;
  }

  // Appended records still go first, and are reported before the end is.
  void FinishSoon(std::shared_ptr<const Interaction> interaction, Done done) override {
    auto finishing = owner_.store_.PrepareFinish(std::move(interaction), token_, sealed_);
    if (!finishing) {
      return WhenAllAreTold([error = std::move(finishing.error()), done = std::move(done)] { done(Fail(error)); });
    }
    WhenAllAreTold([this, finishing = *std::move(finishing), done = std::move(done)]() mutable {
      owner_.store_.SubmitFinish(std::move(finishing), [this, done = std::move(done)](auto finished) {
        owner_.signals_.TellNews(*followers_, key_);
        if (!finished) return done(Fail(std::move(finished.error())));
        const bool is_saved = *finished == PostgresStore::Finished::kSaved;
        done(is_saved ? Result<void>() : Fail(Reason::kFinishAgain, "the chat has changed, or the run is not held"));
      });
    });
  }

  Result<void> Discard() override {
    AwaitAll();
    TRY(owner_.database_.Execute(
        {.sql = "with mine as (delete from reprise.runs where tenant = $1 and chat = $2 and number = $3::int and "
                "  token = $4::uuid returning 1), "
                "j as (delete from reprise.journal where tenant = $1 and chat = $2 and number = $3::int and exists "
                "(select 1 from mine)) "
                "update reprise.chats set running = null where tenant = $1 and id = $2 and running = $3::int and "
                "exists (select 1 from mine)",
         .values = {tenant(), chat(), number(), token_}}));
    return {};
  }

  void GiveBack() override {
    AwaitAll();
    const auto given = owner_.database_.Execute(
        {.sql = "update reprise.runs set owner = null, token = gen_random_uuid() where tenant = $1 and chat = $2 and "
                "number = $3::int and token = $4::uuid",
         .values = {tenant(), chat(), number(), token_}});
    if (!given) LogWarning("a run could not be given back; it is taken up when the lease ends", {{"chat", chat()}});
  }

  void SetAside() override {
    AwaitAll();
    const auto freed = owner_.database_.Execute(
        {.sql =
             "with mine as (update reprise.runs set state = 'aside', owner = null where tenant = $1 and chat = $2 and "
             "  number = $3::int and token = $4::uuid returning 1) "
             "update reprise.chats set running = null where tenant = $1 and id = $2 and running = $3::int and "
             "exists (select 1 from mine)",
         .values = {tenant(), chat(), number(), token_}});
    if (!freed) LogError("a run could not be set aside", {{"chat", chat()}, {"detail", freed.error().detail}});
  }

  Result<JournalContent> ReadJournal() override { return owner_.store_.ReadJournal(ref_.chat_id, ref_.interaction_id); }

  // Under a new key, because the position of a record that was not seen cannot be used again under the old one.
  Result<void> GoOn(const std::vector<std::string>& records) override {
    auto cipher =
        TRY(JournalCipher::Create({.chat = ref_.chat_id, .interaction = ref_.interaction_id}, owner_.store_.keys()));
    auto journal = std::make_unique<JournalText>(std::move(cipher));
    std::string bytes;
    for (const std::string& record : records) TRY(journal->Append(bytes, record, Journal::Reach::kPowerLoss));
    const Rows rows = TRY(owner_.database_.Execute(
        {.sql = "with mine as (select epoch from reprise.runs where tenant = $1 and chat = $2 and number = $3::int and "
                "  token = $4::uuid for share), "
                "old as (delete from reprise.journal j using mine where j.tenant = $1 and j.chat = $2 and j.number = "
                "$3::int "
                "  and j.epoch < mine.epoch), "
                "i as (insert into reprise.journal(tenant, chat, number, epoch, position, record) "
                "  select $1, $2, $3::int, epoch, 0, $5::bytea from mine on conflict (tenant, chat, number, epoch, "
                "position) "
                "  do update set record = excluded.record) "
                "select count(*) from mine",
         .values = {tenant(), chat(), number(), token_, SqlValue::Bytes(std::move(bytes))}}));
    if (rows.number(0, 0) == 0) return Fail(Fenced());
    journal_ = std::move(journal);
    row_ = 1;
    owner_.signals_.TellNews(*followers_, key_);
    return {};
  }

 private:
  struct Record {
    int row;
    std::string bytes;
    Journal::Reach reach;
  };

  Result<bool> LookWhetherHeld(bool is_patient) {
    const bool is_fresh = owner_.lease_.is_fresh();
    const int deaths = owner_.lease_.deaths();
    if (is_fresh && deaths == deaths_.load()) return true;
    const Rows rows = TRY(owner_.database_.Execute({.sql = "select 1 from reprise.runs where tenant = $1 and chat = $2 "
                                                           "and number = $3::int and token = $4::uuid for share",
                                                    .values = {tenant(), chat(), number(), token_},
                                                    .is_patient = is_patient}));
    if (rows.empty()) return false;
    deaths_ = deaths;
    return true;
  }

  // A record is kept only after the one before it, so none after a lost one is kept. `was_lost`: it has been sent again
  // already.
  void Send(int row, bool was_lost, Done done) {
    std::optional<Record> record;
    {
      const MutexLock lock(mutex_);
      if (const auto found = Find(row); found != unsynced_.end()) record = *found;
    }
    if (!record) return Tell(done, {});  // synced meanwhile
    owner_.database_.Submit(
        {.sql = "with held as (select epoch from reprise.runs where tenant = $1 and chat = $2 and number = $3::int and "
                "  token = $4::uuid for share), "
                "mine as (select epoch from held where $5::int = 0 or exists (select 1 from reprise.journal j where "
                "j.tenant = $1 "
                "  and j.chat = $2 and j.number = $3::int and j.epoch = held.epoch and j.position = $5::int - 1)), "
                "i as (insert into reprise.journal(tenant, chat, number, epoch, position, record) "
                "  select $1, $2, $3::int, epoch, $5::int, $6::bytea from mine on conflict do nothing) "
                "select (select count(*) from mine), (select count(*) from held), set_config('synchronous_commit', $7, "
                "true)",
         .values = {tenant(), chat(), number(), token_, std::int64_t{row}, SqlValue::Bytes(std::move(record->bytes)),
                    CommitFor(record->reach)},
         .is_patient = true},
        [this, row, was_lost, done = std::move(done)](const Result<Rows>& rows) mutable {
          const bool is_kept = rows && rows->number(0, 0) > 0;
          const bool is_held = rows && rows->number(0, 1) > 0;
          if (is_kept) return Kept(row, done);
          if (rows && is_held && !was_lost) return SendAgain(row, std::move(done));
          Tell(done, Fail(rows ? Fenced() : rows.error()));
        });
  }

  // Followers elsewhere get the record just before the run here is told that it is kept.
  void Kept(int row, const Done& done) {
    const std::string for_followers = followers_->any() ? BytesOf(row) : std::string();
    Forget(row);
    if (!for_followers.empty()) owner_.signals_.TellRecord(*followers_, key_, epoch_, row, for_followers);
    Tell(done, {});
  }

  // `done` is null if it was called before.
  void Tell(const Done& done, Result<void> outcome) {
    if (!done) return;
    done(std::move(outcome));
    std::function<void()> then;
    {
      const MutexLock lock(mutex_);
      if (--under_way_ == 0) then = std::exchange(then_, nullptr);
      changed_.notify_all();
    }
    if (then) then();
  }

  // The database has crashed and lost the records that were not synced. All of them up to this one are sent again;
  // later ones come here the same way.
  void SendAgain(int row, Done done) {
    std::vector<int> lost;
    {
      const MutexLock lock(mutex_);
      for (const Record& record : unsynced_) {
        if (record.row < row && record.row > sent_again_) lost.push_back(record.row);
      }
      sent_again_ = std::max(sent_again_, row);
    }
    for (const int before : lost) Send(before, /*was_lost=*/true, nullptr);
    Send(row, /*was_lost=*/true, std::move(done));
  }

  std::string BytesOf(int row) {
    const MutexLock lock(mutex_);
    const auto record = Find(row);
    return record == unsynced_.end() ? std::string() : record->bytes;
  }

  // Called when a record is kept. Those that a crash could still take are remembered, up to a number of the latest.
  void Forget(int row) {
    constexpr std::size_t kMostRemembered = 4096;
    const MutexLock lock(mutex_);
    const auto record = Find(row);
    if (record == unsynced_.end()) return;
    kept_ = std::max(kept_, row);
    if (record->reach == Journal::Reach::kPowerLoss) {
      unsynced_.erase(unsynced_.begin(), record + 1);
    } else {
      while (unsynced_.size() > kMostRemembered && unsynced_.front().row <= kept_) unsynced_.pop_front();
    }
  }

  // The rows are consecutive.
  std::deque<Record>::iterator Find(int row) REQUIRES(mutex_) {
    const int first = unsynced_.empty() ? 0 : unsynced_.front().row;
    const bool is_there = row >= first && row - first < static_cast<int>(unsynced_.size());
    return is_there ? unsynced_.begin() + (row - first) : unsynced_.end();
  }

  const std::string& tenant() const { return owner_.store_.tenant(); }
  const std::string& chat() const { return ref_.chat_id.str(); }
  std::int64_t number() const { return ref_.interaction_id.number(); }
  void AwaitAll() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_ == 0; });
  }

  // Calls it when no record is under way, perhaps now.
  void WhenAllAreTold(std::function<void()> call) {
    {
      const MutexLock lock(mutex_);
      if (under_way_ > 0) return void(then_ = std::move(call));
    }
    call();
  }

  PostgresRunStore& owner_;
  const InteractionRef ref_;
  const std::string token_;
  const std::shared_ptr<void> kept_token_;
  std::atomic<int> deaths_;  // the lease's, when the run was last known to be held
  const RunKey key_;
  const std::shared_ptr<RunFollowers> followers_;
  const int epoch_;
  std::unique_ptr<JournalText> journal_;
  int row_ = 0;                              // of the next record
  std::optional<SealedInteraction> sealed_;  // set by the first attempt to finish
  Mutex mutex_;
  Condition changed_;
  int under_way_ GUARDED_BY(mutex_) = 0;            // records
  std::deque<Record> unsynced_ GUARDED_BY(mutex_);  // not kept yet, or still in danger from a crash of the database
  int kept_ GUARDED_BY(mutex_) = -1;                // the last record that was kept
  int sent_again_ GUARDED_BY(mutex_) = -1;          // rows up to here were sent again after a crash
  std::function<void()> then_ GUARDED_BY(mutex_);   // called when nothing is under way
};

// Tries the remembered chat first, and then its row.
Result<std::unique_ptr<RunHold>> PostgresRunStore::Begin(const RunBeginning& beginning) {
  const auto known = beginning.makes_chat         ? std::optional(NumberedId(1))
                     : beginning.expected_version ? store_.NextOf(beginning.chat, *beginning.expected_version)
                                                  : std::nullopt;
  auto hold = known ? Claim(beginning, *known, beginning.makes_chat) : Result<std::unique_ptr<RunHold>>(nullptr);
  while (hold && !*hold) {
    const Rows now = TRY(database_.Execute(
        {.sql = "select next_number, head, running, version, index_record is not null from reprise.chats where "
                "tenant = $1 and id = $2",
         .values = {store_.tenant(), beginning.chat.str()}}));
    if (now.empty() && beginning.expected_head && *beginning.expected_head) return HeadMoved();
    if (!now.empty()) {
      if (!now.is_null(0, 2)) return Fail(RunsAlready(NumberedId(now.number(0, 2))));
      std::optional<InteractionId> head;
      if (!now.is_null(0, 1)) head = NumberedId(now.number(0, 1));
      const bool is_other = beginning.expected_version.value_or(now.number(0, 3)) != now.number(0, 3);
      if (is_other) store_.Forget(beginning.chat);
      const bool is_there = beginning.makes_chat && now.truth(0, 4);
      if (is_other || is_there || beginning.expected_head.value_or(head) != head) return HeadMoved();
      if (now.number(0, 0) > InteractionId::kMaxNumber) {
        return ChatIsFull();
      }
    }
    hold = Claim(beginning, now.empty() ? NumberedId(1) : NumberedId(now.number(0, 0)), now.empty());
  }
  return hold;
}

Result<std::unique_ptr<RunHold>> PostgresRunStore::Claim(const RunBeginning& beginning, InteractionId id, bool is_new) {
  const std::string& chat = beginning.chat.str();
  std::unique_ptr<JournalText> journal;
  std::string bytes;
  if (!beginning.record.empty()) {
    auto cipher = TRY(JournalCipher::Create({.chat = beginning.chat, .interaction = id}, store_.keys()));
    journal = std::make_unique<JournalText>(std::move(cipher));
    TRY(journal->Append(bytes, beginning.record, beginning.reach));
  }
  const Token token = MakeToken();
  const auto head = beginning.expected_head.value_or(std::nullopt);
  // Committed with the ends of other runs, and durable, so that the rows of a run stay until it has ended.
  const bool waits = beginning.queued || beginning.in_line;
  Statement begin{
      .sql = waits ? "select reprise.begin_queued_turn($1, $2, $3::int, $4::bigint, $5::boolean, $6::int, $7::uuid, "
                     "$8::uuid, $9, $10, $11::boolean, $12, $13::bigint)"
                   : "select reprise.begin_turn_at($1, $2, $3::int, $4::bigint, $5::boolean, $6::int, $7::uuid, "
                     "$8::uuid, $9, $10, $11::boolean)",
      .values = {store_.tenant(), chat, std::int64_t{id.number()}, SqlValue::OrNull(beginning.expected_version),
                 beginning.expected_head ? "true" : "false",
                 head ? SqlValue(std::int64_t{head->number()}) : SqlValue::Null(), lease_.instance(), token.text,
                 journal ? SqlValue::Bytes(bytes) : SqlValue::Null(), CommitFor(Journal::Reach::kPowerLoss),
                 is_new ? "true" : "false"},
      .may_share = true};
  if (waits) {
    begin.values.push_back(beginning.queued ? SqlValue(beginning.queued->id) : SqlValue::Null());
    begin.values.push_back(std::int64_t{beginning.queued ? beginning.queued->version : 0});
  }
  auto committed = store_.CommitTogether(std::move(begin));
  if (!committed && committed.error().detail.starts_with(kDequeuedState)) return Dequeued();
  if (!committed && committed.error().detail.starts_with(kNotNextState)) {
    return Fail(Reason::kNotNext, "messages wait in this chat, before this one");
  }
  const Rows begun = TRY(committed);
  if (begun.is_null(0, 0)) {
    // Another process was faster; or the same statement was, and its answer was lost.
    const Rows mine = TRY(database_.Execute(
        {.sql = "select 1 from reprise.runs where tenant = $1 and chat = $2 and number = $3::int and token = $4::uuid",
         .values = {store_.tenant(), chat, std::int64_t{id.number()}, token.text}}));
    if (mine.empty()) return nullptr;
  } else if (is_new) {
    store_.RememberFirst(beginning.chat, begun.number(0, 0));
  }
  return std::make_unique<Hold>(*this, InteractionRef{beginning.chat, id}, token, std::move(journal));
}

Result<std::vector<AbandonedRun>> PostgresRunStore::ClaimAbandoned(std::size_t most) {
  std::vector<Token> tokens;
  std::string array;
  for (std::size_t i = 0; i < most; ++i) {
    tokens.push_back(MakeToken());
    array += (i > 0 ? "," : "") + tokens.back().text;
  }
  // If it is sent again because its answer was lost, the lease finds the runs that it had claimed before.
  const Rows rows = TRY(database_.Execute(
      {.sql = "with x as materialized (select tenant, chat, number from reprise.runs r where tenant = $1 and state = "
              "'running' and "
              "  not exists (select 1 from reprise.instances i where i.id = r.owner and not i.dead) "
              "  limit $3::int for update of r skip locked), "
              "y as (select *, row_number() over () as place from x) "
              "update reprise.runs r set owner = $2::uuid, token = ($4::uuid[])[y.place], epoch = epoch + 1 from y "
              "where (r.tenant, r.chat, r.number) = (y.tenant, y.chat, y.number) returning r.chat, r.number, "
              "y.place::int, r.epoch",
       .values = {store_.tenant(), lease_.instance(), static_cast<std::int64_t>(most), "{" + array + "}"}}));
  std::vector<AbandonedRun> claimed;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const ChatId chat = TRY(ChatId::Parse(rows.text(row, 0)));
    InteractionRef ref{chat, NumberedId(rows.number(row, 1))};
    auto hold = std::make_unique<Hold>(*this, ref, std::move(tokens[static_cast<std::size_t>(rows.number(row, 2) - 1)]),
                                       nullptr, static_cast<int>(rows.number(row, 3)));
    claimed.push_back({.ref = std::move(ref), .hold = std::move(hold)});
  }
  return claimed;
}

Result<std::optional<InteractionId>> PostgresRunStore::HeldElsewhere(const ChatId& chat) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select number from reprise.runs where tenant = $1 and chat = $2 and state = 'running' and "
              "owner is distinct from $3::uuid",
       .values = {store_.tenant(), chat.str(), lease_.instance()}}));
  return rows.empty() ? std::nullopt : std::optional(NumberedId(rows.number(0, 0)));
}

Result<std::vector<InteractionRef>> PostgresRunStore::AllHeldElsewhere() {
  const Rows rows = TRY(database_.Execute({.sql = "select chat, number from reprise.runs where tenant = $1 and state = "
                                                  "'running' and owner is distinct from $2::uuid",
                                           .values = {store_.tenant(), lease_.instance()}}));
  std::vector<InteractionRef> held;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    held.push_back({TRY(ChatId::Parse(rows.text(row, 0))), NumberedId(rows.number(row, 1))});
  }
  return held;
}

// Asks first whether the run has ended, so that the journal of an ended one is read completely.
Result<HeldJournal> PostgresRunStore::ReadHeld(const InteractionRef& run) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select state <> 'running' from reprise.runs where tenant = $1 and chat = $2 and number = $3::int",
       .values = {store_.tenant(), run.chat_id.str(), std::int64_t{run.interaction_id.number()}}}));
  if (rows.empty()) return Fail(ErrorCode::kNotFound, "nothing is kept of this run");
  JournalContent content = TRY(store_.ReadJournal(run.chat_id, run.interaction_id));
  return HeldJournal{.content = std::move(content), .has_ended = rows.truth(0, 0)};
}

Result<bool> PostgresRunStore::RequestStop(const InteractionRef& run, std::string_view reason) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "update reprise.runs set stop_reason = coalesce(stop_reason, $4) where tenant = $1 and chat = $2 and "
              "number = $3::int and state = 'running' returning owner::text",
       .values = {store_.tenant(), run.chat_id.str(), std::int64_t{run.interaction_id.number()},
                  std::string(reason)}}));
  if (rows.empty()) return false;
  if (!rows.is_null(0, 0)) signals_.TellStop(std::string(rows.text(0, 0)), {store_.tenant(), run});
  return true;
}

Result<std::vector<StopRequest>> PostgresRunStore::StopRequests() {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select chat, number, stop_reason from reprise.runs where tenant = $1 and owner = $2::uuid and "
              "stop_reason is not null",
       .values = {store_.tenant(), lease_.instance()}}));
  std::vector<StopRequest> requests;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const ChatId chat = TRY(ChatId::Parse(rows.text(row, 0)));
    requests.push_back({.run = {chat, NumberedId(rows.number(row, 1))}, .reason = std::string(rows.text(row, 2))});
  }
  return requests;
}

Result<std::shared_ptr<void>> PostgresRunStore::Follow(const InteractionRef& run, HeardNews heard) {
  const auto tail = std::make_shared<RunTail>(database_, signals_.shared_from_this(), RunKey{store_.tenant(), run},
                                              store_.keys(), std::move(heard));
  signals_.Follow(tail);
  TRY(tail->Begin());
  return tail;
}

Result<bool> PostgresRunStore::IsFollowedElsewhere(const InteractionRef& run) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select exists (select 1 from reprise.listeners where tenant = $1 and chat = $2 and number = $3::int and "
              "instance <> $4::uuid and until > clock_timestamp())",
       .values = {store_.tenant(), run.chat_id.str(), std::int64_t{run.interaction_id.number()}, lease_.instance()}}));
  return rows.truth(0, 0);
}

void PostgresRunStore::Watch(std::function<void(const Wanted&)> look) {
  lease_.Watch(store_.tenant(), look ? [look] { look({}); } : std::function<void()>());
  signals_.Watch(store_.tenant(), std::move(look));
}

}  // namespace reprise
