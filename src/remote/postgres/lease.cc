#include "remote/postgres/lease.h"

#include <utility>
#include <vector>

#include "base/logging.h"
#include "base/system.h"
#include "base/try.h"

namespace reprise {

// A random UUID, of version 4.
std::string Lease::MakeInstance() {
  std::string hex = RandomHex(16);
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<unsigned char>(hex[16]) % 4];
  for (const std::size_t dash : {20, 16, 12, 8}) hex.insert(dash, "-");
  return hex;
}

Result<std::unique_ptr<Lease>> Lease::Take(Database& database, std::string instance, std::string version) {
  std::unique_ptr<Lease> lease(new Lease(database, std::move(instance), std::move(version)));
  TRY(database.Execute({.sql = "insert into reprise.instances(id, lease_until, version, queues_by_rows) values "
                               "($1::uuid, clock_timestamp() + $2::interval, $3, true) on conflict (id) do nothing",
                        .values = {lease->instance_, kLength, lease->version_}}));
  lease->renewed_at_ = Ticks();
  lease->thread_ = std::thread([raw = lease.get()] { raw->Work(); });
  return lease;
}

Lease::Lease(Database& database, std::string instance, std::string version)
    : database_(database, TenantDatabase::kAll),
      instance_(std::move(instance)),
      version_(std::move(version)),
      renewed_at_(Ticks()) {}

Lease::~Lease() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (!database_.is_connected()) return;  // it ends by itself
  const auto ended =
      database_.Execute({.sql = "update reprise.instances set dead = true where id = $1::uuid", .values = {instance_}});
  if (!ended) LogWarning("the lease could not be given back; it ends by itself", {{"detail", ended.error().detail}});
}

bool Lease::is_fresh() const {
  const auto age = std::chrono::steady_clock::duration(Ticks() - renewed_at_.load());
  return age < kStale;
}

std::shared_ptr<void> Lease::Keep(const std::string& token) {
  const MutexLock lock(tokens_mutex_);
  tokens_.insert(token);
  return {nullptr, [this, token](void*) {
            const MutexLock gone(tokens_mutex_);
            tokens_.erase(token);
          }};
}

void Lease::Watch(const std::string& tenant, std::function<void()> look) {
  const MutexLock lock(mutex_);
  if (look) {
    watchers_[tenant] = std::move(look);
  } else {
    watchers_.erase(tenant);
  }
}

void Lease::WatchOthers(std::function<void(const std::string& tenant)> look) {
  const MutexLock lock(mutex_);
  others_ = std::move(look);
}

void Lease::EverySecond(std::function<void()> call) {
  const MutexLock lock(mutex_);
  every_second_ = std::move(call);
}

void Lease::LookNow() {
  {
    const MutexLock lock(mutex_);
    look_now_ = true;
  }
  changed_.notify_all();
}

void Lease::DeclareDead(const std::string& instance) {
  const auto declared = database_.Execute(
      {.sql = "update reprise.instances set dead = true where id::text = $1 and not dead and id <> $2::uuid",
       .values = {instance, instance_}});
  if (!declared) LogWarning("a server could not be declared dead", {{"detail", declared.error().detail}});
  LookNow();
}

void Lease::Work() {
  using Clock = std::chrono::steady_clock;
  auto renewal = Clock::now() + kRenewal, look = Clock::now() + kLook, sweep = Clock::now() + kSweep;
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait_until(lock, std::min(renewal, look), [this]() REQUIRES(mutex_) { return stopping_ || look_now_; });
    if (stopping_) return;
    const bool look_due = std::exchange(look_now_, false) || Clock::now() >= look;
    lock.unlock();
    if (Clock::now() >= renewal) {
      Renew();
      GiveBackForgotten();
      renewal = Clock::now() + kRenewal;
    }
    if (look_due) {
      {
        const MutexLock calling(mutex_);
        if (every_second_) Guarded("the work of every second", every_second_);
      }
      Guarded("the look for abandoned runs", [this] { Look(); });
      look = Clock::now() + kLook;
    }
    if (Clock::now() >= sweep) {
      Sweep();
      sweep = Clock::now() + kSweep;
    }
    lock.lock();
  }
}

// An instance that was declared dead lives on. Runs that others have taken up are theirs, as the tokens show.
void Lease::Renew() {
  const auto sent = Ticks(), last = renewed_at_.load();
  const auto renewed =
      database_.Execute({.sql = "with before as (select dead from reprise.instances where id = $1::uuid) "
                                "insert into reprise.instances(id, lease_until, version, queues_by_rows) values "
                                "($1::uuid, clock_timestamp() + $2::interval, $3, true) "
                                "on conflict (id) do update set lease_until = excluded.lease_until, dead = false "
                                "returning coalesce((select dead from before), true)",
                         .values = {instance_, kLength, version_}});
  if (!renewed) return LogWarning("the lease could not be renewed", {{"detail", renewed.error().detail}});
  const bool was_dead = renewed->truth(0, 0);
  if (was_dead) ++deaths_;  // before it is fresh again
  // Perhaps the others could not renew theirs either, so they get time for it.
  if (std::chrono::steady_clock::duration(Ticks() - last) > kStale) judges_from_ = Ticks() + kGrace.count();
  renewed_at_ = sent;
  if (!was_dead) return;
  LogWarning("this server was declared dead; others may have taken up its runs");
  const MutexLock lock(mutex_);
  for (const auto& [tenant, look] : watchers_) look();  // they drop lost runs
}

// Each token is known here before it is in the database. So one that is read there and not known here has no holder.
void Lease::GiveBackForgotten() {
  const auto rows = database_.Execute({.sql = "select replace(token::text, '-', '') from reprise.runs where owner = "
                                              "$1::uuid and state = 'running'",
                                       .values = {instance_}});
  if (!rows) return;
  std::vector<std::string> forgotten;
  {
    const MutexLock lock(tokens_mutex_);
    for (std::size_t row = 0; row < rows->size(); ++row) {
      std::string token(rows->text(row, 0));
      if (!tokens_.contains(token)) forgotten.push_back(std::move(token));
    }
  }
  for (std::string& token : forgotten) {
    const auto given =
        database_.Execute({.sql = "update reprise.runs set owner = null, token = gen_random_uuid() where "
                                  "owner = $1::uuid and token = $2::uuid and state = 'running' returning 1",
                           .values = {instance_, std::move(token)}});
    // No row: the run has ended between the two looks.
    if (given && !given->empty()) LogWarning("a run is given back, because its beginning or claim was not known here");
  }
}

// Removes the remains of runs that have ended; their followers have read them by now. A chat that was deleted and made
// again has runs of the same numbers. Only older servers leave rows in `runs` when a run ends.
void Lease::Sweep() {
  const auto swept = database_.Execute(
      {.sql = "with ended as (delete from reprise.ended_runs where at < clock_timestamp() - interval '1 minute' "
              "  returning tenant, chat, number), "
              "kept as (delete from reprise.runs where ended_at < clock_timestamp() - interval '1 minute' "
              "  returning tenant, chat, number), "
              "gone as (select * from kept union select * from ended e where not exists (select 1 from reprise.runs r "
              "  where (r.tenant, r.chat, r.number) = (e.tenant, e.chat, e.number)) and not exists (select 1 from "
              "  reprise.ended_runs n where (n.tenant, n.chat, n.number) = (e.tenant, e.chat, e.number) and n.at >= "
              "  clock_timestamp() - interval '1 minute')), "
              "q as (delete from reprise.questions q using gone where (q.tenant, q.chat, q.number) = (gone.tenant, "
              "gone.chat, gone.number)), "
              "w as (delete from reprise.queued where taken_at < clock_timestamp() - interval '10 minutes'), "
              "l as (delete from reprise.listeners where until < clock_timestamp() - interval '1 minute'), "
              "c as (delete from reprise.changes where at < clock_timestamp() - interval '3 minutes') "
              "delete from reprise.journal j using gone where (j.tenant, j.chat, j.number) = (gone.tenant, gone.chat, "
              "gone.number)"});
  if (!swept) LogWarning("the remains of ended runs could not be removed", {{"detail", swept.error().detail}});
}

// An instance whose own lease has ended does not judge others, because they may have lost the database, too. The same
// statement checks that, because it may have been under way all that time.
void Lease::DeclareDeadWhoseLeaseHasEnded() {
  if (Ticks() < judges_from_) return;
  const auto declared = database_.Execute(
      {.sql =
           "update reprise.instances set dead = true where not dead and lease_until < clock_timestamp() and id <> "
           "$1::uuid and exists (select 1 from reprise.instances mine where mine.id = $1::uuid and not mine.dead and "
           "mine.lease_until > clock_timestamp()) returning id::text",
       .values = {instance_}});
  for (std::size_t row = 0; declared && row < declared->size(); ++row) {
    LogWarning("another server's lease has ended; its runs are taken up", {{"instance", declared->text(row, 0)}});
  }
}

void Lease::Look() {
  DeclareDeadWhoseLeaseHasEnded();
  const auto wanted = database_.Execute(
      {.sql =
           "select tenant from reprise.runs r where state = 'running' and not exists (select 1 from "
           "reprise.instances i "
           "  where i.id = r.owner and not i.dead) "
           "union select tenant from reprise.runs r where owner = $1::uuid and (stop_reason is not null or exists "
           "  (select 1 from reprise.questions q where q.tenant = r.tenant and q.chat = r.chat and q.number = r.number "
           "  and q.answer is not null)) "
           "union select q.tenant from reprise.queued q join reprise.chats c on c.tenant = q.tenant and c.id = q.chat "
           "  where q.taken is null and q.failure is null and c.running is null and (q.owner = $1::uuid or not exists "
           "  (select 1 from reprise.instances i where i.id = q.owner and not i.dead)) "
           "union select tenant from reprise.queue where not exists (select 1 from reprise.instances i where not "
           "  i.dead and not i.queues_by_rows)",
       .values = {instance_}});
  if (!wanted) return;
  const MutexLock lock(mutex_);
  for (std::size_t row = 0; row < wanted->size(); ++row) {
    const std::string tenant(wanted->text(row, 0));
    const auto watcher = watchers_.find(tenant);
    if (watcher != watchers_.end()) {
      watcher->second();
    } else if (others_) {
      others_(tenant);
    }
  }
}

}  // namespace reprise
