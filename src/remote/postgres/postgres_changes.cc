#include "remote/postgres/postgres_changes.h"

#include <algorithm>
#include <array>

#include "base/logging.h"
#include "base/text.h"
#include "remote/postgres/postgres_store.h"

namespace reprise {
namespace {

using Kind = ChatChange::Kind;

constexpr std::array kKinds = {Kind::kChatCreated,    Kind::kChatRenamed,        Kind::kChatDeleted,
                               Kind::kHeadMoved,      Kind::kInteractionStarted, Kind::kInteractionEnded,
                               Kind::kApprovalOpened, Kind::kApprovalClosed,     Kind::kInputOpened,
                               Kind::kInputClosed,    Kind::kQueueChanged};

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
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](Kind each) { return ToString(each) == name; });
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
