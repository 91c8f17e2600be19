#include "remote/redis/redis_signals.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <system_error>

#include "base/logging.h"
#include "base/try.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kPrefix = "reprise:";
constexpr std::chrono::seconds kConnectLimit{3};
constexpr std::chrono::seconds kAnswerLimit{1};  // a hanging server counts as lost
constexpr milliseconds kFirstPause{50}, kLongestPause{2000};
constexpr std::size_t kMostUnanswered = 8 * 1024 * 1024;  // bytes

std::string_view TextOf(const redisReply& reply) {
  return reply.str ? std::string_view(reply.str, reply.len) : std::string_view();
}

Error Broken(const char* why) { return MakeError(ErrorCode::kUnavailable, "the connection to Redis is lost", why); }

struct Parsed {
  std::vector<RedisUrl> urls;
  std::shared_ptr<const RedisTls> tls;
};

Result<Parsed> Parse(const RedisSignals::Options& options) {
  Parsed parsed;
  for (const std::string& url : options.urls) parsed.urls.push_back(TRY(RedisUrl::Parse(url)));
  if (parsed.urls.empty()) return Fail(ErrorCode::kInvalidArgument, "no address of Redis is given");
  const bool needs_tls = std::ranges::any_of(parsed.urls, [](const auto& url) { return url.is_tls; });
  if (needs_tls) parsed.tls = TRY(RedisTls::Make(options.ca_file));
  TRY(HiredisLibrary::Load());
  return parsed;
}

}  // namespace

Result<std::unique_ptr<RedisSignals>> RedisSignals::Open(Options options) {
  Parsed parsed = TRY(Parse(options));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake || !stop) return Fail(ErrorCode::kInternal, "no event descriptor is left");
  return std::unique_ptr<RedisSignals>(new RedisSignals(std::move(options), std::move(parsed.urls),
                                                        std::move(parsed.tls), std::move(wake), std::move(stop)));
}

Result<void> RedisSignals::Check(const Options& options) {
  const Parsed parsed = TRY(Parse(options));
  const UniqueFd never(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::optional<Error> last;
  for (const RedisUrl& url : parsed.urls) {
    const auto connection = RedisConnection::Open(url, parsed.tls, Clock::now() + kConnectLimit, never.get());
    if (connection) return {};
    last = connection.error();
  }
  return Fail(*std::move(last));
}

RedisSignals::RedisSignals(Options options, std::vector<RedisUrl> urls, std::shared_ptr<const RedisTls> tls,
                           UniqueFd wake, UniqueFd stop)
    : options_(std::move(options)),
      urls_(std::move(urls)),
      tls_(std::move(tls)),
      wake_(std::move(wake)),
      stop_(std::move(stop)),
      thread_([this] { Work(); }) {}

RedisSignals::~RedisSignals() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  Wake();
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void RedisSignals::Wake() const { ::eventfd_write(wake_.get(), 1); }

bool RedisSignals::is_connected() const {
  const MutexLock lock(mutex_);
  return publisher_ != nullptr && !is_broken_;
}

std::shared_ptr<void> RedisSignals::Subscribe(const std::string& topic, Heard heard) {
  struct Both {
    std::shared_ptr<void> here, otherwise;
  };
  const auto both = std::make_shared<Both>();
  both->here = subscribers_.Add(topic, heard);
  if (options_.otherwise) both->otherwise = options_.otherwise->Subscribe(topic, std::move(heard));
  {
    const MutexLock lock(mutex_);
    if (!topics_.insert(topic).second) return both;
  }
  Wake();
  return both;
}

void RedisSignals::Publish(std::string_view topic, std::string_view payload) { Send(topic, {&payload, 1}); }

void RedisSignals::PublishAll(std::string_view topic, const std::vector<std::string>& payloads) {
  Send(topic, std::vector<std::string_view>(payloads.begin(), payloads.end()));
}

// Writes to the socket here, because a switch to the thread would cost as much as Redis itself.
void RedisSignals::Send(std::string_view topic, std::span<const std::string_view> payloads) {
  const std::string channel = std::string(kPrefix).append(topic);
  {
    const MutexLock lock(mutex_);
    if (publisher_ && !is_broken_) {
      const bool had_none = unanswered_.empty();
      for (; !payloads.empty() && !is_broken_; payloads = payloads.subspan(1)) {
        unanswered_.push_back({std::string(topic), std::string(payloads.front()), Clock::now()});
        unanswered_bytes_ += payloads.front().size();
        is_broken_ = unanswered_bytes_ > kMostUnanswered || !publisher_->Queue({"PUBLISH", channel, payloads.front()});
      }
      is_broken_ = is_broken_ || !publisher_->Flush();
      if (is_broken_ || publisher_->must_flush() || had_none) Wake();
    }
  }
  for (const std::string_view payload : payloads) TellOtherwise({std::string(topic), std::string(payload), {}});
}

void RedisSignals::TellOtherwise(const Published& signal) const {
  if (options_.otherwise) options_.otherwise->Publish(signal.topic, signal.payload);
}

// --- the thread ------------------------------------------------------------------------------------------------------

void RedisSignals::Work() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    if (!subscriber_ && !Connect()) {
      Pause();
      continue;
    }
    const auto done = Wait().and_then([this] { return ReadMessages(); }).and_then([this] { return ReadReplies(); });
    if (!done) Disconnect(done.error());
  }
}

bool RedisSignals::Connect() {
  const RedisUrl& url = urls_[next_url_ % urls_.size()];
  const auto until = Clock::now() + kConnectLimit;
  auto subscriber = RedisConnection::Open(url, tls_, until, stop_.get());
  auto publisher = subscriber ? RedisConnection::Open(url, tls_, until, stop_.get()) : Fail(subscriber.error());
  if (!publisher) {
    ++next_url_;
    if (publisher.error().detail != "stopping" && !std::exchange(was_reported_, true)) {
      LogWarning("Redis cannot be reached; servers tell each other through the database meanwhile",
                 {{"redis", url.name()}, {"detail", publisher.error().detail}});
    }
    return false;
  }
  subscriber_ = *std::move(subscriber);
  subscribed_.clear();
  {
    const MutexLock lock(mutex_);
    publisher_ = *std::move(publisher);
    is_broken_ = false;
  }
  if (std::exchange(was_reported_, false)) LogInfo("Redis can be reached again", {{"redis", url.name()}});
  pause_ = milliseconds(0);
  return true;
}

// Sends unconfirmed signals the other way, and tells the subscribers that signals for us may be lost.
void RedisSignals::Disconnect(const Error& why) {
  std::deque<Published> unanswered;
  {
    const MutexLock lock(mutex_);
    publisher_.reset();
    unanswered = std::exchange(unanswered_, {});
    unanswered_bytes_ = 0;
  }
  subscriber_.reset();
  if (!std::exchange(was_reported_, true)) {
    LogWarning("Redis cannot be reached; servers tell each other through the database meanwhile",
               {{"detail", why.detail}});
  }
  for (const Published& signal : unanswered) TellOtherwise(signal);
  Guarded("who hears signals", [this] { subscribers_.TellAll(); });
}

bool RedisSignals::SubscribeToNew() {
  std::vector<std::string> channels;
  {
    const MutexLock lock(mutex_);
    for (const std::string& topic : topics_) {
      if (subscribed_.insert(topic).second) channels.push_back(std::string(kPrefix) + topic);
    }
  }
  if (channels.empty()) return true;
  std::vector<std::string_view> command = {"SUBSCRIBE"};
  command.insert(command.end(), channels.begin(), channels.end());
  return subscriber_->Send(command);
}

Result<void> RedisSignals::Wait() {
  if (!SubscribeToNew()) return Fail(Broken("SUBSCRIBE"));
  pollfd fds[3] = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                   {.fd = subscriber_->fd(), .events = POLLIN, .revents = 0},
                   {.fd = -1, .events = POLLIN, .revents = 0}};
  if (subscriber_->must_flush()) fds[1].events |= POLLOUT;
  int longest = -1;
  {
    const MutexLock lock(mutex_);
    if (is_broken_) return Fail(Broken("PUBLISH"));
    fds[2].fd = publisher_->fd();
    if (publisher_->must_flush()) fds[2].events |= POLLOUT;
    if (!unanswered_.empty()) {
      const auto left = std::chrono::ceil<milliseconds>(unanswered_.front().at + kAnswerLimit - Clock::now()).count();
      if (left <= 0) return Fail(Broken("it does not answer"));
      longest = static_cast<int>(left);
    }
  }
  if (::poll(fds, std::size(fds), longest) < 0 && errno != EINTR) {
    return Fail(Broken(std::generic_category().message(errno).c_str()));
  }
  eventfd_t ignored;
  if (fds[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
  return {};
}

Result<void> RedisSignals::ReadMessages() {
  if (!subscriber_->Flush()) return Fail(Broken("SUBSCRIBE"));
  return subscriber_->Receive([this](const redisReply& message) { TakeMessage(message); });
}

// ["message", channel, payload], or ["subscribe", channel, count], before which nothing of the channel was heard.
void RedisSignals::TakeMessage(const redisReply& message) {
  if (message.type == REDIS_REPLY_ERROR) {
    return LogError("Redis refuses what servers tell each other", {{"detail", TextOf(message)}});
  }
  if (message.type != REDIS_REPLY_ARRAY || message.elements != 3) return;
  const std::string_view kind = TextOf(*message.element[0]), channel = TextOf(*message.element[1]);
  if (!channel.starts_with(kPrefix)) return;
  const std::string_view topic = channel.substr(kPrefix.size());
  Guarded("who hears signals", [&] {
    if (kind == "subscribe") subscribers_.Tell(topic, {});
    if (kind == "message") subscribers_.Tell(topic, TextOf(*message.element[2]));
  });
}

// Signals without a subscriber at Redis also go the other way, because a server may be cut off from Redis.
Result<void> RedisSignals::ReadReplies() {
  std::vector<Published> untaken;
  Result<void> read;
  {
    const MutexLock lock(mutex_);
    if (!publisher_->Flush()) return Fail(Broken("PUBLISH"));
    read = publisher_->Receive([&](const redisReply& reply) REQUIRES(mutex_) {
      if (unanswered_.empty()) return;
      unanswered_bytes_ -= unanswered_.front().payload.size();
      const bool was_taken = reply.type == REDIS_REPLY_INTEGER && reply.integer > 0;
      if (!was_taken) untaken.push_back(std::move(unanswered_.front()));
      unanswered_.pop_front();
    });
  }
  for (const Published& signal : untaken) TellOtherwise(signal);
  return read;
}

void RedisSignals::Pause() {
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  const auto until = Clock::now() + pause_;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    {
      const MutexLock lock(mutex_);
      if (left <= 0 || stopping_) return;
    }
    pollfd fd{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    ::poll(&fd, 1, static_cast<int>(left));
    eventfd_t ignored;
    ::eventfd_read(wake_.get(), &ignored);
  }
}

}  // namespace reprise
