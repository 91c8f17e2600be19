#include "reprise/server.h"

#include <utility>

#include "app/options.h"
#include "app/server_parts.h"
#include "base/mutex.h"
#include "base/try.h"
#include "doors/api/server.h"

namespace reprise {
namespace {

// Listens to a run's log, and waits for its end.
class EndOfLog final : public EventLogListener {
 public:
  explicit EndOfLog(const EventLog& log) : log_(log) {}
  void OnPublished(std::size_t) noexcept override {
    if (!log_.end().closed) return;
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void Wait() {
    OnPublished(1);  // it may have ended before Subscribe
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return ended_; });
  }

 private:
  const EventLog& log_;
  Mutex mutex_;
  Condition changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const Options& options, std::unique_ptr<ServerParts> parts) : options_(options), parts_(std::move(parts)) {}

  Engine& engine() { return parts_->engine(); }

  Result<std::string> Listen() {
    const MutexLock lock(mutex_);
    if (http_ != nullptr) return Fail(ErrorCode::kConflict, "the server listens already");
    if (stopped_) return Fail(ErrorCode::kConflict, "the server has been stopped");
    ServerOptions options = TRY(HttpOptionsFrom(options_));
    http_ = TRY(parts_->Listen(std::move(options)));
    return UrlOf(http_->host(), http_->port());
  }

  void Stop() {
    const MutexLock lock(mutex_);
    if (!std::exchange(stopped_, true)) parts_->Stop(http_.get());
  }

 private:
  const Options options_;
  const std::unique_ptr<ServerParts> parts_;
  Mutex mutex_;
  std::unique_ptr<HttpServer> http_ GUARDED_BY(mutex_);  // null until it listens
  bool stopped_ GUARDED_BY(mutex_) = false;
};

Result<std::unique_ptr<Server>> Server::Open(const Options& options, Extensions extensions) {
  Options complete = options;
  TRY(FinishProviders(complete.providers));
  auto parts = TRY(ServerParts::Assemble(complete, std::move(extensions)));
  return std::unique_ptr<Server>(new Server(std::make_unique<Impl>(std::move(complete), std::move(parts))));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { Stop(); }
Engine& Server::engine() { return impl_->engine(); }
Result<std::string> Server::Listen() { return impl_->Listen(); }
void Server::Stop() { impl_->Stop(); }

Result<Interaction> Server::Run(const ChatId& chat, StartRequest request) {
  const auto run = TRY(engine().Start(chat, std::move(request)));
  const auto end = std::make_shared<EndOfLog>(*run.log);
  run.log->Subscribe(end);
  end->Wait();
  run.log->Unsubscribe(end.get());
  const auto id = TRY(run.interaction_id ? Result<InteractionId>(*run.interaction_id) : run.waiting->outcome());
  return engine().GetInteraction(chat, id);
}

}  // namespace reprise
