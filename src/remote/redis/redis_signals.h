#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/local_signals.h"
#include "base/mutex.h"
#include "base/system.h"
#include "remote/redis/redis_connection.h"
#include "reprise/result.h"
#include "reprise/signals.h"

namespace reprise {

// Signals through PUBLISH and SUBSCRIBE of a Redis server, over one connection each; Redis stores nothing. Redis may
// fail at any moment: signals that no subscriber took there go through `otherwise`, if given. Thread-safe.
class RedisSignals final : public Signals {
 public:
  struct Options {
    std::vector<std::string> urls;  // any one of a cluster will do
    std::string ca_file{};          // certificates trusted besides the system's
    Signals* otherwise = nullptr;   // may be null; must outlive this
  };
  // kInvalidArgument if a URL or the file is invalid, kUnavailable if a library is missing. Does not connect yet.
  static Result<std::unique_ptr<RedisSignals>> Open(Options options);
  // Checks whether a server lets us in, for diagnosis. Blocks for a few seconds at most.
  static Result<void> Check(const Options& options);
  ~RedisSignals() override;
  RedisSignals(const RedisSignals&) = delete;
  RedisSignals& operator=(const RedisSignals&) = delete;

  void Publish(std::string_view topic, std::string_view payload) override;
  void PublishAll(std::string_view topic, const std::vector<std::string>& payloads) override;
  std::shared_ptr<void> Subscribe(const std::string& topic, Heard heard) override;
  bool is_connected() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Published {
    std::string topic, payload;
    Clock::time_point at;
  };
  RedisSignals(Options options, std::vector<RedisUrl> urls, std::shared_ptr<const RedisTls> tls, UniqueFd wake,
               UniqueFd stop);

  void Work();
  bool Connect();
  void Disconnect(const Error& why);
  // Waits for work. Returns an error if the connection is lost.
  Result<void> Wait();
  Result<void> ReadMessages();
  Result<void> ReadReplies();
  bool SubscribeToNew();
  void TakeMessage(const redisReply& message);
  void Send(std::string_view topic, std::span<const std::string_view> payloads);
  void TellOtherwise(const Published& signal) const;
  void Pause();
  void Wake() const;

  const Options options_;
  const std::vector<RedisUrl> urls_;
  const std::shared_ptr<const RedisTls> tls_;  // null if none of the URLs needs it
  const UniqueFd wake_, stop_;                 // eventfds; stop_ is set only in the destructor
  Subscribers subscribers_;

  mutable Mutex mutex_;
  std::unique_ptr<RedisConnection> publisher_ GUARDED_BY(mutex_);  // null: not connected; made and closed by the thread
  std::deque<Published> unanswered_ GUARDED_BY(mutex_);            // in the order of their replies
  std::size_t unanswered_bytes_ GUARDED_BY(mutex_) = 0;
  bool is_broken_ GUARDED_BY(mutex_) = false;  // the thread must reconnect
  std::set<std::string> topics_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  // Used by the thread only.
  std::unique_ptr<RedisConnection> subscriber_;
  std::set<std::string> subscribed_;
  std::size_t next_url_ = 0;
  bool was_reported_ = false;
  std::chrono::milliseconds pause_{0};
  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace reprise
