#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/chat_feed.h"
#include "api/routes.h"
#include "api/server.h"
#include "base/mutex.h"
#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

// An engine with the routes that lead to it: whoever has this reaches the chats of one tenant and no others.
class TenantService {
 public:
  // What all tenants have in common; outlives the object.
  TenantService(std::shared_ptr<Engine> engine, const SharedContext& shared);
  TenantService(const TenantService&) = delete;  // its routes refer to it
  TenantService& operator=(const TenantService&) = delete;

  Engine& engine() { return *engine_; }
  ChatFeed& feed() { return feed_; }
  const Router& router() const { return router_; }
  // Nothing runs in it that would be lost if it were closed.
  bool IsIdle() const { return engine_->counters().active_runs == 0; }

 private:
  const std::shared_ptr<Engine> engine_;
  ChatFeed feed_;
  const HandlerContext context_;
  const Router router_;
};

// The site of a server: the tenants, each opened when its first request comes, and closed when it is idle and others
// are wanted. With no source there is one, the single user, who is also the operator of a server for several people.
class Tenants final : public Site {
 public:
  // The references must outlive the object.
  Tenants(Engine& operators, ServerOptions options, const Gate& gate, const HttpMetrics& metrics);
  ~Tenants() override;  // Stop
  Tenants(const Tenants&) = delete;
  Tenants& operator=(const Tenants&) = delete;

  const Router& root() const override { return root_->router(); }
  Result<std::shared_ptr<const Router>> Enter(const Principal& principal) override;
  Result<std::shared_ptr<const Router>> EnterKnown(const Principal& principal) override;
  // What waited for an answer waits again, and what was interrupted is told so: one tenant after the other, in a thread
  // of its own.
  void TakeUp() override;
  // Not the operator's runs.
  void Stop() override;
  // Sums of all tenants.
  std::vector<Metric> CollectMetrics() const override;

 private:
  struct Tenant {
    Mutex mutex;  // held while it is opened or closed
    std::shared_ptr<TenantService> service GUARDED_BY(mutex);
    std::atomic<bool> is_open{false};  // there is a service; for who has mutex_, which comes after this one
    std::atomic<std::int64_t> last_used{0};
  };
  std::vector<std::shared_ptr<Tenant>> All() const;
  Result<std::shared_ptr<TenantService>> Find(const Principal& principal);
  Result<std::shared_ptr<TenantService>> Open(Tenant& tenant, const Principal& principal) REQUIRES(tenant.mutex);
  // Of those that have left something; lives as long as somebody may add to it.
  struct Left {
    void Add(const Principal& principal);

    Mutex mutex;
    std::condition_variable_any changed;
    std::deque<Principal> waiting GUARDED_BY(mutex);
  };
  void TakeUpAll(const std::stop_token& stop);
  void TakeUpOne(const Principal& principal);
  void CloseIdle(std::size_t most);
  void CloseOne(Tenant& tenant);

  const ServerOptions options_;
  const TenantSource& source_ = options_.tenants;
  const HttpMetrics& metrics_;
  const SharedContext shared_;
  const std::shared_ptr<TenantService> root_;

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Tenant>> tenants_ GUARDED_BY(mutex_);  // by org and user
  Engine::Counters closed_ GUARDED_BY(mutex_){};  // what those have counted that are closed
  std::atomic<std::size_t> open_{0};
  std::atomic<bool> stopping_{false};
  const std::shared_ptr<Left> left_ = std::make_shared<Left>();
  std::set<std::string> failed_;  // used by the thread; those that could not be opened, which was said
  std::jthread taking_up_;
};

}  // namespace reprise
