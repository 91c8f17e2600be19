#include "remote/postgres/signals.h"

#include <algorithm>
#include <optional>

#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "remote/postgres/postgres_store.h"
#include "remote/postgres/run_tail.h"

namespace reprise {

namespace {

constexpr std::string_view kPrefix = "reprise_";
constexpr std::size_t kLongest = 7999;  // bytes of a payload
constexpr std::size_t kMostAtOnce = 500;

}  // namespace

Result<std::unique_ptr<NotifySignals>> NotifySignals::Open(std::string url) {
  std::unique_ptr<NotifySignals> signals(new NotifySignals);
  const auto heard = [raw = signals.get()](std::string_view channel, std::string_view payload) {
    if (channel.starts_with(kPrefix)) raw->subscribers_.Tell(channel.substr(kPrefix.size()), payload);
  };
  signals->database_ =
      TRY(Database::Open({.url = std::move(url), .on_notification = heard, .on_connected = [raw = signals.get()] {
                            raw->ListenToAll();
                          }}));
  return signals;
}

NotifySignals::~NotifySignals() = default;

std::shared_ptr<void> NotifySignals::Subscribe(const std::string& topic, Heard heard) {
  auto subscription = subscribers_.Add(topic, std::move(heard));
  const std::string* statement = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto [place, is_new] = listening_.try_emplace(topic, "listen \"" + std::string(kPrefix) + topic + "\"");
    if (is_new) statement = &place->second;
  }
  if (statement && database_->is_connected()) Listen(topic, *statement);
  return subscription;
}

// Called for the first connection, and for each one after a loss.
void NotifySignals::ListenToAll() {
  std::vector<const std::pair<const std::string, std::string>*> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& each : listening_) all.push_back(&each);
  }
  for (const auto* each : all) Listen(each->first, each->second);
}

// Signals that were published before LISTEN took effect are not heard, so subscribers are told to look.
void NotifySignals::Listen(const std::string& topic, const std::string& statement) {
  database_->Submit({.sql = statement.c_str()}, [this, topic](const Result<Rows>& listens) {
    if (listens) subscribers_.Tell(topic, {});
  });
}

void NotifySignals::Publish(std::string_view topic, std::string_view payload) {
  if (!database_->is_connected()) return;
  if (payload.size() > kLongest) payload = payload.substr(0, payload.find('\n'));
  if (payload.size() > kLongest) payload = {};
  {
    const MutexLock lock(mutex_);
    waiting_.emplace_back(std::string(kPrefix).append(topic), payload);
    if (is_sending_) return;
    is_sending_ = true;
  }
  SendWhatWaits();
}

void NotifySignals::SendWhatWaits() {
  std::vector<std::string> channels, payloads;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) {
      is_sending_ = false;
      return;
    }
    for (std::size_t count = 0; !waiting_.empty() && count < kMostAtOnce; ++count, waiting_.pop_front()) {
      channels.push_back(std::move(waiting_.front().first));
      payloads.push_back(std::move(waiting_.front().second));
    }
  }
  database_->Submit({.sql = "select set_config('synchronous_commit', 'off', true), pg_notify(channel, payload) from "
                            "unnest($1::text[], $2::text[]) as each(channel, payload)",
                     .values = {SqlValue::Texts(channels), SqlValue::Texts(payloads)}},
                    [this](const Result<Rows>& told) {
                      if (!told) Log(LogLevel::kDebug, "a signal could not be sent", {{"detail", told.error().detail}});
                      SendWhatWaits();
                    });
}

namespace {

// A follower reports every second and counts for longer, so that one failed look costs nothing.
constexpr std::chrono::seconds kFresh{5};

std::string TopicOf(const std::string& instance) {
  std::string topic = "instance_" + instance;
  std::erase(topic, '-');
  return topic;
}

// "KIND TENANT CHAT NUMBER", and the content, if any, on the next line.
std::string MessageOf(std::string_view kind, const RunKey& key, std::string_view content = {}) {
  std::string message(kind);
  message.append(" ").append(EncodeBase64Url(key.tenant)).append(" ").append(key.run.chat_id.str());
  message.append(" ").append(std::to_string(key.run.interaction_id.number()));
  if (!content.empty()) message.append("\n").append(content);
  return message;
}

std::optional<int> NumberIn(std::string_view text) {
  const auto number = ParseNumber<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<RunKey> KeyIn(std::string_view text) {
  const auto tenant = DecodeBase64Url(TakeWord(text));
  const auto chat = ChatId::Parse(std::string(TakeWord(text)));
  const auto number = NumberIn(text);
  if (!tenant || !chat || !number || *number == 0 || *number > static_cast<int>(InteractionId::kMaxNumber)) {
    return std::nullopt;
  }
  return RunKey{*tenant, {*chat, NumberedId(*number)}};
}

RunKey KeyAt(const Rows& rows, std::size_t row) {
  return {std::string(rows.text(row, 0)), {*ChatId::Parse(rows.text(row, 1)), NumberedId(rows.number(row, 2))}};
}

}  // namespace

// --- followers of a run ----------------------------------------------------------------------------------------------

bool RunFollowers::Add(const std::string& instance) {
  const auto now = Clock::now(), until = now + kFresh;
  const MutexLock lock(mutex_);
  const auto before = std::exchange(until_[instance], until);
  latest_ = until.time_since_epoch().count();
  return before <= now;
}

std::vector<std::string> RunFollowers::Fresh() const {
  const auto now = Clock::now();
  std::vector<std::string> fresh;
  const MutexLock lock(mutex_);
  for (const auto& [instance, until] : until_) {
    if (until > now) fresh.push_back(instance);
  }
  return fresh;
}

bool RunFollowers::any() const { return latest_.load() > Clock::now().time_since_epoch().count(); }

// --- to others -------------------------------------------------------------------------------------------------------

RunSignals::RunSignals(Database& database, Signals& signals, std::string instance, std::function<void()> look)
    : database_(database, TenantDatabase::kAll),
      signals_(signals),
      instance_(std::move(instance)),
      look_(std::move(look)),
      subscription_(signals_.Subscribe(TopicOf(instance_), [this](std::string_view payload) { Hear(payload); })) {}

void RunSignals::TellStop(const std::string& owner, const RunKey& key) {
  signals_.Publish(TopicOf(owner), MessageOf("stop", key));
}
void RunSignals::TellAnswer(const std::string& owner, const RunKey& key) {
  signals_.Publish(TopicOf(owner), MessageOf("answer", key));
}
void RunSignals::TellFollowed(const std::string& owner, const RunKey& key) {
  signals_.Publish(TopicOf(owner), MessageOf("follow", key, instance_));
}

void RunSignals::TellRecord(const RunFollowers& followers, const RunKey& key, int epoch, int row,
                            std::string_view bytes) {
  std::string content = std::to_string(epoch) + " " + std::to_string(row) + " ";
  AppendBase64Url(content, bytes);
  const std::string message = MessageOf("record", key, content);
  for (const std::string& instance : followers.Fresh()) signals_.Publish(TopicOf(instance), message);
}

void RunSignals::TellNews(const RunFollowers& followers, const RunKey& key) {
  for (const std::string& instance : followers.Fresh()) signals_.Publish(TopicOf(instance), MessageOf("record", key));
}

// --- from others -----------------------------------------------------------------------------------------------------

void RunSignals::Watch(const std::string& tenant, std::function<void(const Wanted&)> watcher) {
  const MutexLock lock(watchers_mutex_);
  watchers_[tenant] = std::move(watcher);
}

std::shared_ptr<RunFollowers> RunSignals::Own(const RunKey& key) {
  auto followers = std::make_shared<RunFollowers>();
  const MutexLock lock(mutex_);
  owned_[key] = followers;
  return followers;
}

void RunSignals::Follow(const std::shared_ptr<RunTail>& tail) {
  const MutexLock lock(mutex_);
  tails_.emplace(tail->key(), tail);
}

std::vector<std::shared_ptr<RunTail>> RunSignals::Tails(const RunKey* key) {
  std::vector<std::shared_ptr<RunTail>> tails;
  const MutexLock lock(mutex_);
  const auto begin = key ? tails_.lower_bound(*key) : tails_.begin(),
             end = key ? tails_.upper_bound(*key) : tails_.end();
  for (auto each = begin; each != end;) {
    auto tail = each->second.lock();
    each = tail ? std::next(each) : tails_.erase(each);
    if (tail) tails.push_back(std::move(tail));
  }
  return tails;
}

void RunSignals::Hear(std::string_view payload) {
  if (payload.empty()) {  // something may be lost
    for (const auto& tail : Tails()) tail->Read();
    return look_();
  }
  std::string_view head = payload.substr(0, payload.find('\n'));
  const std::string_view content = payload.substr(std::min(payload.size(), head.size() + 1));
  const std::string_view kind = TakeWord(head);
  if (const auto key = KeyIn(head)) HearOf(kind, *key, content);
}

void RunSignals::HearOf(std::string_view kind, const RunKey& key, std::string_view content) {
  if (kind == "stop") return TellWatcher(key, Wanted::Kind::kStop);
  if (kind == "answer") return TellWatcher(key, Wanted::Kind::kAnswer);
  if (kind == "follow" && !content.empty()) return HearOfFollower(key, std::string(content));
  if (kind != "record") return;
  const auto epoch = NumberIn(TakeWord(content)), row = NumberIn(TakeWord(content));
  const auto bytes = epoch && row ? DecodeBase64Url(content) : std::nullopt;
  for (const auto& tail : Tails(&key)) bytes ? tail->Hear(*epoch, *row, *bytes) : tail->Read();
}

// A new follower reads once more, because it was not told of records that were kept after its read and before it was
// known here. It is told on another thread, because the caller may hold the follower's lock.
void RunSignals::HearOfFollower(const RunKey& key, const std::string& instance) {
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    const auto owned = owned_.find(key);
    const auto followers = owned == owned_.end() ? nullptr : owned->second.lock();
    is_new = followers && followers->Add(instance);
  }
  if (!is_new) return;
  database_.CallLater({}, [weak = weak_from_this(), instance, key] {
    if (const auto self = weak.lock()) self->signals_.Publish(TopicOf(instance), MessageOf("record", key));
  });
}

void RunSignals::TellWatcher(const RunKey& key, Wanted::Kind kind) {
  const MutexLock lock(watchers_mutex_);
  const auto watcher = watchers_.find(key.tenant);
  if (watcher != watchers_.end() && watcher->second) watcher->second({.kind = kind, .run = key.run});
}

void RunSignals::LookEverySecond() {
  LookForFollowers();
  LookAtFollowed();
}

void RunSignals::LookForFollowers() {
  {
    const MutexLock lock(mutex_);
    std::erase_if(owned_, [](const auto& each) { return each.second.expired(); });
    if (owned_.empty()) return;
  }
  database_.Submit(
      {.sql = "select l.tenant, l.chat, l.number, l.instance::text from reprise.listeners l join reprise.runs r on "
              "(r.tenant, r.chat, r.number) = (l.tenant, l.chat, l.number) where r.owner = $1::uuid and l.instance <> "
              "$1::uuid and l.until > clock_timestamp()",
       .values = {instance_}},
      [weak = weak_from_this()](const Result<Rows>& rows) {
        const auto self = weak.lock();
        for (std::size_t row = 0; self && rows && row < rows->size(); ++row) {
          self->HearOf("follow", KeyAt(*rows, row), rows->text(row, 3));
        }
      });
}

// Repeats that these runs are followed, and asks for their last rows.
void RunSignals::LookAtFollowed() {
  std::vector<std::string> tenants, chats;
  std::vector<std::int64_t> numbers;
  for (const auto& tail : Tails()) {
    tenants.push_back(tail->key().tenant);
    chats.push_back(tail->key().run.chat_id.str());
    numbers.push_back(tail->key().run.interaction_id.number());
  }
  if (tenants.empty()) return;
  database_.Submit(
      {.sql =
           "with k as (select distinct * from unnest($2::text[], $3::text[], $4::int[]) as k(tenant, chat, number)), "
           "l as (insert into reprise.listeners(tenant, chat, number, instance, until) select r.tenant, r.chat, "
           "r.number, $1::uuid, clock_timestamp() + '5 seconds' from k join reprise.runs r using (tenant, chat, "
           "number) where r.state = 'running' on conflict (tenant, chat, number, instance) do update set until = "
           "excluded.until) "
           "select k.tenant, k.chat, k.number, coalesce(r.state <> 'running', true), coalesce(r.epoch, 0), "
           "coalesce((select max(j.position) from reprise.journal j where j.tenant = k.tenant and j.chat = k.chat "
           "and j.number = k.number and j.epoch = r.epoch), -1), set_config('synchronous_commit', 'off', true) "
           "from k left join reprise.runs r using (tenant, chat, number)",
       .values = {instance_, SqlValue::Texts(tenants), SqlValue::Texts(chats), SqlValue::Ints(numbers)}},
      [weak = weak_from_this()](const Result<Rows>& rows) {
        const auto self = weak.lock();
        for (std::size_t row = 0; self && rows && row < rows->size(); ++row) {
          const RunKey key = KeyAt(*rows, row);
          for (const auto& tail : self->Tails(&key)) {
            tail->Compare(rows->truth(row, 3), static_cast<int>(rows->number(row, 4)),
                          static_cast<int>(rows->number(row, 5)));
          }
        }
      });
}

}  // namespace reprise
