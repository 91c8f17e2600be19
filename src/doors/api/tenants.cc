#include "doors/api/tenants.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "doors/api/metrics.h"

namespace reprise {
namespace {

// Idle tenants stay open for their next request. Each costs some threads, a lock and its cached data.
constexpr std::size_t kMostIdle = 64, kMostOpen = 1'000;

constexpr long kMapAndList = 2;  // the owners of a tenant that no request is entering

void Add(Engine::Counters& sum, const Engine::Counters& more) {
  sum.active_runs += more.active_runs;
  sum.waiting_approvals += more.waiting_approvals;
  sum.waiting_runs += more.waiting_runs;
  sum.started += more.started;
  sum.completed += more.completed;
  sum.failed += more.failed;
  sum.cancelled += more.cancelled;
}

std::string KeyOf(const Principal& principal) { return principal.org + "\n" + principal.user; }

std::int64_t Moment() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

Error Stopping() { return Refused(Reason::kStopping, "the server is stopping"); }

}  // namespace

TenantService::TenantService(std::shared_ptr<Engine> engine, const SharedContext& shared)
    : engine_(std::move(engine)),
      feed_(*engine_),
      context_{.engine = *engine_, .feed = feed_, .shared = shared},
      router_(MakeRoutes(context_)) {}

Tenants::Tenants(Engine& operators, ServerOptions options, const Gate& gate, const HttpMetrics& metrics)
    : options_(std::move(options)),
      metrics_(metrics),
      shared_{.options = options_, .gate = gate, .site = *this},
      root_(std::make_shared<TenantService>(std::shared_ptr<Engine>(std::shared_ptr<void>(), &operators), shared_)) {}

Tenants::~Tenants() { Stop(); }

Result<std::shared_ptr<TenantService>> Tenants::Find(const Principal& principal) {
  if (!principal.is_tenant()) return root_;
  std::shared_ptr<Tenant> tenant;
  {
    const MutexLock lock(mutex_);
    auto& known = tenants_[KeyOf(principal)];
    if (!known) known = std::make_shared<Tenant>();
    tenant = known;
  }
  if (open_.load() >= kMostIdle) CloseIdle(kMostIdle - 1);
  const MutexLock lock(tenant->mutex);
  return Open(*tenant, principal);
}

Result<std::shared_ptr<const Router>> Tenants::Enter(const Principal& principal) {
  const auto service = TRY(Find(principal));
  return std::shared_ptr<const Router>(service, &service->router());
}

Result<std::shared_ptr<const Router>> Tenants::EnterKnown(const Principal& principal) {
  const auto known = source_.list();
  const bool is_known = std::any_of(known.begin(), known.end(), [&](const Principal& each) {
    return each.org == principal.org && each.user == principal.user;
  });
  if (!is_known) return Fail(ErrorCode::kNotFound, "there is no such user in this org");
  return Enter(principal);
}

Result<std::shared_ptr<TenantService>> Tenants::Open(Tenant& tenant, const Principal& principal) {
  tenant.last_used = Moment();
  if (tenant.service) return tenant.service;
  if (stopping_) return Fail(Stopping());
  if (open_.load() >= kMostOpen) {
    return Fail(Reason::kOverloaded, "too many users are busy at once; try again");
  }
  auto engine = TRY(source_.open(principal));
  tenant.service = std::make_shared<TenantService>(std::move(engine), shared_);
  tenant.is_open = true;
  ++open_;
  return tenant.service;
}

std::vector<std::shared_ptr<Tenants::Tenant>> Tenants::All() const {
  std::vector<std::shared_ptr<Tenant>> all;
  const MutexLock lock(mutex_);
  for (const auto& [key, tenant] : tenants_) all.push_back(tenant);
  return all;
}

// Closes tenants, the longest unused first, until at most `most` are open. A tenant in use stays open.
void Tenants::CloseIdle(std::size_t most) {
  auto all = All();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
  for (const auto& tenant : all) {
    if (open_.load() <= most) break;
    if (tenant.use_count() <= kMapAndList) CloseOne(*tenant);
  }
  // While mutex_ is held, no request can enter a tenant that only the map and the list own.
  const MutexLock lock(mutex_);
  std::erase_if(tenants_,
                [](const auto& known) { return known.second.use_count() <= kMapAndList && !known.second->is_open; });
}

void Tenants::CloseOne(Tenant& tenant) {
  const MutexLock lock(tenant.mutex);
  if (!tenant.service || tenant.service.use_count() > 1 || !tenant.service->IsIdle()) return;
  const Engine::Counters last = tenant.service->engine().counters();
  tenant.service.reset();
  tenant.is_open = false;
  --open_;
  const MutexLock sum_lock(mutex_);
  Add(closed_, last);
}

// The watcher reports a tenant again and again until it is taken up, so it is added only once.
void Tenants::Left::Add(const Principal& principal) {
  const MutexLock lock(mutex);
  if (std::find(waiting.begin(), waiting.end(), principal) != waiting.end()) return;
  waiting.push_back(principal);
  changed.notify_all();
}

void Tenants::TakeUp() {
  if (!source_.left) return;
  if (source_.watch) {
    source_.watch([left = left_](const Principal& principal) { left->Add(principal); });
  }
  taking_up_ = std::jthread([this](const std::stop_token& stop) { TakeUpAll(stop); });
}

void Tenants::TakeUpAll(const std::stop_token& stop) {
  const auto first = source_.left();
  for (const Principal& principal : first) {
    if (stopping_) return;
    Guarded("a user's engine", [&] { TakeUpOne(principal); });
  }
  if (!first.empty()) LogInfo("runs left by an earlier server were taken up", {{"users", first.size()}});
  MutexLock lock(left_->mutex);
  const auto some = [this]() REQUIRES(left_->mutex) { return !left_->waiting.empty(); };
  while (left_->changed.wait(lock, stop, some)) {
    const Principal next = std::move(left_->waiting.front());
    left_->waiting.pop_front();
    lock.unlock();
    Guarded("a user's engine", [&] { TakeUpOne(next); });
    lock.lock();
  }
}

void Tenants::TakeUpOne(const Principal& principal) {
  const auto service = Find(principal);
  if (service) {
    failed_.erase(KeyOf(principal));
  } else if (!stopping_ && failed_.insert(KeyOf(principal)).second) {
    LogError("a user's chats cannot be opened", {{"code", service.error().reason}, {"error", service.error().message}});
  }
}

std::vector<Metric> Tenants::CollectMetrics() const {
  Engine::Counters sum = root_->engine().counters();
  {
    const MutexLock lock(mutex_);
    Add(sum, closed_);
  }
  for (const auto& tenant : All()) {
    const MutexLock lock(tenant->mutex);
    if (!tenant->service) continue;
    Add(sum, tenant->service->engine().counters());
  }
  return reprise::CollectMetrics(sum, root_->engine().telemetry(), metrics_);
}

void Tenants::Stop() {
  stopping_ = true;
  if (source_.watch) source_.watch(nullptr);
  taking_up_.request_stop();
  if (taking_up_.joinable()) taking_up_.join();
  root_->feed().Stop();
  std::vector<std::jthread> threads;  // each waits for the checkpoints of one tenant's runs
  for (const auto& tenant : All()) {
    const MutexLock lock(tenant->mutex);
    const auto service = tenant->service;
    if (!service) continue;
    const auto stop = [service] {
      service->engine().Stop();
      service->feed().Stop();
    };
    service->IsIdle() ? stop() : static_cast<void>(threads.emplace_back(stop));
  }
}

Result<std::unique_ptr<HttpServer>> OpenServer(Engine& engine, ServerOptions options, std::vector<UniqueFd> sockets) {
  HttpOptions http = static_cast<HttpOptions&&>(options);  // the site gets the rest
  const auto make_site = [&](const Gate& gate, const HttpMetrics& metrics) {
    return std::make_unique<Tenants>(engine, std::move(options), gate, metrics);
  };
  return HttpServer::Open(std::move(http), make_site, std::move(sockets));
}

}  // namespace reprise
