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

#include "base/mutex.h"
#include "doors/api/chat_feed.h"
#include "doors/api/routes.h"
#include "doors/api/server.h"
#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

// An engine with the routes to it. Its holder reaches the chats of one tenant and no others.
class TenantService {
 public:
  // `shared` is common to all tenants and outlives the object.
  TenantService(std::shared_ptr<Engine> engine, const SharedContext& shared);
  TenantService(const TenantService&) = delete;  // its routes refer to this object
  TenantService& operator=(const TenantService&) = delete;

  Engine& engine() { return *engine_; }
  ChatFeed& feed() { return feed_; }
  const Router& router() const { return router_; }
  // True if no run would be lost by closing it.
  bool IsIdle() const { return engine_->counters().active_runs == 0; }

 private:
  const std::shared_ptr<Engine> engine_;
  ChatFeed feed_;
  const HandlerContext context_;
  const Router router_;
};

// The site of a server. Each tenant is opened by its first request, and closed when it is idle and others need room.
// The root is the single user, or the operator of a server for several people.
class Tenants final : public Site {
 public:
  // The references must outlive the object.
  Tenants(Engine& operators, ServerOptions options, const Gate& gate, const HttpMetrics& metrics);
  ~Tenants() override;  // calls Stop
  Tenants(const Tenants&) = delete;
  Tenants& operator=(const Tenants&) = delete;

  const Router& root() const override { return root_->router(); }
  Result<std::shared_ptr<const Router>> Enter(const Principal& principal) override;
  Result<std::shared_ptr<const Router>> EnterKnown(const Principal& principal) override;
  // Opens the tenants with runs that an earlier server left, one after the other, on a thread of its own. Runs that
  // waited for an answer wait again; interrupted ones end.
  void TakeUp() override;
  // Does not stop the operator's runs.
  void Stop() override;
  // Sums of all tenants.
  std::vector<Metric> CollectMetrics() const override;

 private:
  struct Tenant {
    Mutex mutex;  // held while the tenant is opened or closed
    std::shared_ptr<TenantService> service GUARDED_BY(mutex);
    std::atomic<bool> is_open{false};  // `service` is set; for holders of mutex_, which is locked after `mutex`
    std::atomic<std::int64_t> last_used{0};
  };
  std::vector<std::shared_ptr<Tenant>> All() const;
  Result<std::shared_ptr<TenantService>> Find(const Principal& principal);
  Result<std::shared_ptr<TenantService>> Open(Tenant& tenant, const Principal& principal) REQUIRES(tenant.mutex);
  // Tenants with runs that another server left. Lives as long as a callback may add to it.
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
  Engine::Counters closed_ GUARDED_BY(mutex_){};                               // of closed tenants
  std::atomic<std::size_t> open_{0};
  std::atomic<bool> stopping_{false};
  const std::shared_ptr<Left> left_ = std::make_shared<Left>();
  std::set<std::string> failed_;  // used by the thread; tenants whose failure to open is logged
  std::jthread taking_up_;
};

}  // namespace reprise
