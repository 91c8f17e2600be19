#include "postgres/notify_signals.h"

#include <vector>

#include "base/logging.h"
#include "base/try.h"

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

// The connection was lost, or is the first.
void NotifySignals::ListenToAll() {
  std::vector<const std::pair<const std::string, std::string>*> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& each : listening_) all.push_back(&each);
  }
  for (const auto* each : all) Listen(each->first, each->second);
}

// What was published before this counts is not heard.
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
                     .values = {SqlTextArray(channels), SqlTextArray(payloads)}},
                    [this](const Result<Rows>& told) {
                      if (!told) Log(LogLevel::kDebug, "a signal could not be sent", {{"detail", told.error().detail}});
                      SendWhatWaits();
                    });
}

}  // namespace reprise
