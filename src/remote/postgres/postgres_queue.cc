#include "remote/postgres/postgres_queue.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "remote/postgres/postgres_store.h"
#include "store/record.h"
#include "store/store_errors.h"
#include "store/whole_queues.h"

namespace reprise {
namespace {

std::int64_t SizeOf(const QueuedMessage& message) { return static_cast<std::int64_t>(message.user_message.size()); }

// A failure may quote a person's request, so it is sealed like a message, in the place of one.
QueuedMessage AsMessage(std::string_view id, const Error& failure) {
  const Json json = {{"code", static_cast<int>(failure.code)},
                     {"reason", failure.reason},
                     {"message", failure.message},
                     {"retryable", failure.retryable}};
  return {.id = std::string(id), .user_message = DumpJson(json)};
}

Error FailureIn(const QueuedMessage& message) {
  Error failure = MakeError(ErrorCode::kInternal, "it could not begin");
  const auto json = ParseJson(message.user_message);
  if (!json || !json->is_object()) return failure;
  failure.code = static_cast<ErrorCode>(json->value("code", static_cast<int>(failure.code)));
  failure.reason = json->value("reason", failure.reason);
  failure.message = json->value("message", failure.message);
  failure.retryable = json->value("retryable", false);
  return failure;
}

}  // namespace

PostgresQueue::PostgresQueue(Options options)
    : options_(std::move(options)),
      database_(options_.database, options_.tenant),
      instance_(options_.instance.empty() ? SqlValue::Null() : SqlValue(options_.instance)) {}

// An old row goes before the others, once no server is left that would use it as a whole.
Result<Rows> PostgresQueue::ReadRows(const ChatId& chat) {
  return database_.Execute(
      {.sql = "select id, version::bigint, record, failure, owner is not null and owner is distinct from $3::uuid and "
              "  exists (select 1 from reprise.instances i where i.id = owner and not i.dead), place "
              "from reprise.queued where tenant = $1 and chat = $2 and taken is null "
              "union all select '', 0, record, null, false, '-9223372036854775808'::bigint from reprise.queue where "
              "tenant = $1 "
              "  and chat = $2 and not exists (select 1 from reprise.instances i where not i.dead and not "
              "  i.queues_by_rows) "
              "order by place",
       .values = {options_.tenant, chat.str(), instance_}});
}

Result<std::vector<WaitingMessage>> PostgresQueue::LoadQueue(const ChatId& chat) {
  Rows rows = TRY(ReadRows(chat));
  while (!rows.empty() && rows.text(0, 0).empty()) {
    TRY(Split(chat, rows.text(0, 2)));
    rows = TRY(ReadRows(chat));
  }
  std::vector<WaitingMessage> waiting;
  for (std::size_t row = 0; row < rows.size(); ++row) waiting.push_back(TRY(ReadRow(chat, rows, row)));
  return waiting;
}

Result<WaitingMessage> PostgresQueue::ReadRow(const ChatId& chat, const Rows& rows, std::size_t row) {
  const std::string_view id = rows.text(row, 0);
  WaitingMessage waiting{.message = TRY(OpenOne(chat, id, rows.text(row, 2))),
                         .version = rows.number(row, 1),
                         .is_others = rows.truth(row, 4)};
  if (!rows.is_null(row, 3)) waiting.failure = FailureIn(TRY(OpenOne(chat, id, rows.text(row, 3))));
  return waiting;
}

Result<QueuedMessage> PostgresQueue::OpenOne(const ChatId& chat, std::string_view id, std::string_view record) const {
  auto messages = TRY(options_.files.OpenQueue(chat, record));
  if (messages.size() == 1 && messages.front().id == id) return std::move(messages.front());
  return Fail(IntegrityError("swap", {.chat = chat, .interaction = std::nullopt, .queue = true},
                             "it is another message than its row says"));
}

Result<void> PostgresQueue::Split(const ChatId& chat, std::string_view record) {
  std::vector<std::string> ids, records;
  std::vector<std::int64_t> sizes;
  for (const QueuedMessage& message : TRY(options_.files.OpenQueue(chat, record))) {
    ids.push_back(message.id);
    sizes.push_back(SizeOf(message));
    records.push_back(TRY(options_.files.SealQueue(chat, {message})));
  }
  TRY(database_.Execute(
      {.sql = "with gone as (delete from reprise.queue where tenant = $1 and chat = $2 and record = $3 returning 1), "
              "first as (select least(coalesce(min(place), 0), 0) as place from reprise.queued where tenant = $1 and "
              "  chat = $2) "
              "insert into reprise.queued(tenant, chat, place, id, size, record) "
              "  select $1, $2, first.place - cardinality($4::text[]) + each.n - 1, each.id, each.size, each.record "
              "  from gone, first, unnest($4::text[], $5::int[], $6::bytea[]) with ordinality as "
              "  each(id, size, record, n) on conflict do nothing",
       .values = {options_.tenant, chat.str(), SqlValue::Bytes(std::string(record)), SqlValue::Texts(ids),
                  SqlValue::Ints(sizes), SqlValue::ByteStrings(records)}}));
  return {};
}

Result<void> PostgresQueue::AddQueued(const ChatId& chat, const QueuedMessage& message) {
  std::string record = TRY(options_.files.SealQueue(chat, {message}));
  const Rows added = TRY(database_.Execute(
      {.sql = "select is_there, has_room from reprise.add_queued($1, $2, $3, $4::uuid, $5::bigint, $6, $7::bigint, "
              "$8::bigint)",
       .values = {options_.tenant, chat.str(), message.id, instance_, SizeOf(message),
                  SqlValue::Bytes(std::move(record)), static_cast<std::int64_t>(kMaxQueued),
                  static_cast<std::int64_t>(kMaxQueuedBytes)}}));
  if (!added.truth(0, 0)) return NoSuchChat();
  return added.truth(0, 1) ? Result<void>() : CheckQueueHasRoom(kMaxQueued + 1, 0);
}

// If another process changes the message at the same time, it is read again.
Result<void> PostgresQueue::ChangeQueued(const ChatId& chat, std::string_view id, const std::string& user_message) {
  for (;;) {
    const Rows rows = TRY(database_.Execute({.sql = "select version::bigint, record from reprise.queued where tenant = "
                                                    "$1 and chat = $2 and id = $3 and taken is null",
                                             .values = {options_.tenant, chat.str(), std::string(id)}}));
    if (rows.empty()) return NoneWaits();
    QueuedMessage message = TRY(OpenOne(chat, id, rows.text(0, 1)));
    message.user_message = user_message;
    std::string record = TRY(options_.files.SealQueue(chat, {message}));
    const Rows changed = TRY(database_.Execute(
        {.sql = "update reprise.queued set record = $4, size = $5::bigint, failure = null, version = version + 1 where "
                "tenant = $1 and chat = $2 and id = $3 and taken is null and (version = $6::bigint or record = $4) "
                "returning 1",
         .values = {options_.tenant, chat.str(), std::string(id), SqlValue::Bytes(std::move(record)), SizeOf(message),
                    rows.number(0, 0)}}));
    if (!changed.empty()) return {};
  }
}

Result<void> PostgresQueue::RemoveQueued(const ChatId& chat, std::string_view id) {
  // A removed message keeps a row without text for a while, because it may be added again by a repeated call.
  const Rows removed = TRY(database_.Execute(
      {.sql = "update reprise.queued set taken = 0, taken_at = clock_timestamp(), record = '', failure = null where "
              "tenant = $1 and chat = $2 and id = $3 and coalesce(taken, 0) = 0 returning 1",
       .values = {options_.tenant, chat.str(), std::string(id)}}));
  if (removed.empty()) return NoneWaits();
  return {};
}

Result<void> PostgresQueue::FailQueued(const ChatId& chat, std::string_view id, const Error& failure) {
  std::string record = TRY(options_.files.SealQueue(chat, {AsMessage(id, failure)}));
  TRY(database_.Execute(
      {.sql = "update reprise.queued set failure = $4 where tenant = $1 and chat = $2 and id = $3 and taken is null",
       .values = {options_.tenant, chat.str(), std::string(id), SqlValue::Bytes(std::move(record))}}));
  return {};
}

Result<void> PostgresQueue::ClearQueue(const ChatId& chat) {
  TRY(database_.Execute(
      {.sql = "with old as (delete from reprise.queue where tenant = $1 and chat = $2) "
              "update reprise.queued set taken = 0, taken_at = clock_timestamp(), record = '', failure = null where "
              "tenant = $1 and chat = $2 and taken is null",
       .values = {options_.tenant, chat.str()}}));
  return {};
}

Result<std::vector<ChatId>> PostgresQueue::ListQueues() {
  const Rows rows = TRY(database_.Execute(
      {.sql =
           "select chat from reprise.queued where tenant = $1 and taken is null and failure is null and "
           "  (owner is null or owner = $2::uuid or not exists (select 1 from reprise.instances i where i.id = owner "
           "  and not i.dead)) "
           "union select chat from reprise.queue where tenant = $1 and not exists (select 1 from reprise.instances "
           "  i where not i.dead and not i.queues_by_rows)",
       .values = {options_.tenant, instance_}}));
  std::vector<ChatId> chats;
  for (std::size_t row = 0; row < rows.size(); ++row) chats.push_back(TRY(ChatId::Parse(rows.text(row, 0))));
  return chats;
}

Result<std::optional<InteractionId>> PostgresQueue::BegunElsewhere(const ChatId& chat, std::string_view id) {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select taken from reprise.queued where tenant = $1 and chat = $2 and id = $3 and taken > 0",
       .values = {options_.tenant, chat.str(), std::string(id)}}));
  if (rows.empty()) return std::optional<InteractionId>();
  return std::optional(NumberedId(rows.number(0, 0)));
}

void PostgresQueue::LeaveQueues() {
  const auto left = database_.Execute(
      {.sql = "update reprise.queued set owner = null where tenant = $1 and owner = $2::uuid and taken is null",
       .values = {options_.tenant, instance_}});
  if (!left) LogWarning("queued messages could not be left to others; they are when the lease ends");
}

namespace {

using Kind = ChatChange::Kind;

constexpr std::array kKinds = {Kind::kChatCreated,    Kind::kChatRenamed,        Kind::kChatDeleted,
                               Kind::kHeadMoved,      Kind::kInteractionStarted, Kind::kInteractionEnded,
                               Kind::kApprovalOpened, Kind::kApprovalClosed,     Kind::kInputOpened,
                               Kind::kInputClosed,    Kind::kQueueChanged,       Kind::kJobsChanged};

// Rows may become visible in another order than that of their times.
constexpr std::chrono::seconds kLookBack{3}, kRemembered{10};

// "KIND CHAT NUMBER REQUEST"; the number is 0 without an interaction.
std::string TextOf(const ChatChange& change) {
  std::string text(ToString(change.kind));
  text.append(" ").append(change.chat_id.str());
  text.append(" ").append(std::to_string(change.interaction_id ? change.interaction_id->number() : 0));
  return text.append(" ").append(change.request_id);
}

// nullopt for a kind that only a newer program knows, for example.
std::optional<ChatChange> ChangeIn(std::string_view text) {
  const std::string_view name = TakeWord(text);
  const auto kind = std::ranges::find_if(kKinds, [&](Kind each) { return ToString(each) == name; });
  const auto chat = ChatId::Parse(std::string(TakeWord(text)));
  const auto number = ParseNumber<std::int64_t>(TakeWord(text));
  if (kind == kKinds.end() || !chat || !number || *number < 0 || *number > InteractionId::kMaxNumber) {
    return std::nullopt;
  }
  ChatChange change{.kind = *kind, .chat_id = *chat, .request_id = std::string(text)};
  if (*number > 0) change.interaction_id = NumberedId(*number);
  return change;
}

}  // namespace

std::shared_ptr<PostgresChanges> PostgresChanges::Make(Options options) {
  std::shared_ptr<PostgresChanges> changes(new PostgresChanges(std::move(options)));
  changes->subscription_ = changes->options_.signals.Subscribe(
      changes->options_.topic, [raw = changes.get()](std::string_view payload) { raw->HearSignal(payload); });
  return changes;
}

// The row comes first, for servers that miss the signal. Changes within a moment go together, usually all of a short
// turn.
void PostgresChanges::Tell(const ChatChange& change) {
  constexpr std::chrono::milliseconds kMoment{20};
  {
    const MutexLock lock(sending_mutex_);
    waiting_.push_back(TextOf(change));
    if (is_sending_) return;
    is_sending_ = true;
  }
  options_.database.CallLater(kMoment, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->SendWhatWaits();
  });
}

void PostgresChanges::SendWhatWaits() {
  std::vector<std::string> texts;
  {
    const MutexLock lock(sending_mutex_);
    texts = std::exchange(waiting_, {});
    is_sending_ = false;
    if (texts.empty()) return;
  }
  Statement add{.sql =
                    "insert into reprise.changes(tenant, instance, change) select $1, $2::uuid, each.text from "
                    "unnest($3::text[]) with ordinality as each(text, place) order by each.place returning id, "
                    "set_config('synchronous_commit', 'off', true)",
                .values = {options_.tenant, options_.instance, SqlValue::Texts(texts)}};
  database_.Submit(std::move(add), [weak = weak_from_this(), texts](const Result<Rows>& rows) {
    const auto self = weak.lock();
    if (!self) return;
    if (!rows) LogWarning("other servers could not be told of changes", {{"detail", rows.error().detail}});
    std::vector<std::string> messages;
    for (std::size_t row = 0; rows && row < rows->size(); ++row) {
      std::string& message = messages.emplace_back(EncodeBase64Url(self->options_.tenant));
      message.append(" ").append(self->options_.instance).append(" ");
      message.append(std::to_string(rows->number(row, 0))).append(" ").append(texts[row]);
    }
    self->options_.signals.PublishAll(self->options_.topic, messages);
  });
}

void PostgresChanges::Hear(std::function<void(std::optional<ChatChange>)> heard) {
  const MutexLock lock(mutex_);
  heard_ = std::move(heard);
}

void PostgresChanges::HearSignal(std::string_view payload) {
  if (payload.empty()) return LookEverySecond();
  const auto tenant = DecodeBase64Url(TakeWord(payload));
  const std::string_view instance = TakeWord(payload);
  const auto id = ParseNumber<std::int64_t>(TakeWord(payload));
  if (tenant != options_.tenant || instance == options_.instance || !id) return;
  const MutexLock lock(mutex_);
  Take(*id, payload);
}

void PostgresChanges::Take(std::int64_t id, std::string_view text) {
  if (!taken_.emplace(id, Clock::now()).second) return;
  auto change = ChangeIn(text);
  if (change && heard_) heard_(std::move(change));
}

void PostgresChanges::LookEverySecond() {
  std::optional<std::string> since;
  {
    const MutexLock lock(mutex_);
    since = looked_at_;
  }
  database_.Submit(
      {.sql = "select clock_timestamp()::text, coalesce($2::timestamptz < clock_timestamp() - interval '2 minutes', "
              "false), c.id, c.change from (select 1) one left join reprise.changes c on c.tenant = $1 and c.instance "
              "<> $3::uuid and c.at > coalesce($2::timestamptz, clock_timestamp()) - $4::interval order by c.id",
       .values = {options_.tenant, SqlValue::OrNull(since), options_.instance,
                  std::to_string(kLookBack.count()) + " seconds"}},
      [weak = weak_from_this()](const Result<Rows>& rows) {
        if (const auto self = weak.lock(); self && rows) self->TakeRows(*rows);
      });
}

void PostgresChanges::TakeRows(const Rows& rows) {
  const MutexLock lock(mutex_);
  std::erase_if(taken_, [now = Clock::now()](const auto& each) { return each.second < now - kRemembered; });
  // Rows of the time since the last look have been deleted.
  if (rows.truth(0, 1) && heard_) heard_(std::nullopt);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows.is_null(row, 2)) Take(rows.number(row, 2), rows.text(row, 3));
  }
  looked_at_ = rows.text(0, 0);
}

}  // namespace reprise
