#include "postgres/lease.h"

#include <utility>

#include "base/logging.h"
#include "base/random.h"
#include "base/try.h"

namespace reprise {

// Random, of version 4.
std::string Lease::MakeInstance() {
  std::string hex = RandomHex(16);
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<unsigned char>(hex[16]) % 4];
  for (const std::size_t dash : {20, 16, 12, 8}) hex.insert(dash, "-");
  return hex;
}

std::string Lease::ChannelOf(const std::string& instance) {
  std::string channel = "reprise_" + instance;
  std::erase(channel, '-');
  return channel;
}

Result<std::unique_ptr<Lease>> Lease::Take(Database& database, std::string instance, std::string version) {
  std::unique_ptr<Lease> lease(new Lease(database, std::move(instance), std::move(version)));
  TRY(database.Execute({.sql = "insert into reprise.instances(id, lease_until, version) values ($1::uuid, "
                               "clock_timestamp() + $2::interval, $3) on conflict (id) do nothing",
                        .values = {lease->instance_, kLength, lease->version_}}));
  lease->renewed_at_ = Ticks();
  lease->thread_ = std::thread([raw = lease.get()] { raw->Work(); });
  return lease;
}

Lease::Lease(Database& database, std::string instance, std::string version)
    : database_(database), instance_(std::move(instance)), version_(std::move(version)), renewed_at_(Ticks()) {}

Lease::~Lease() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  const auto ended =
      database_.Execute({.sql = "update reprise.instances set dead = true where id = $1::uuid", .values = {instance_}});
  if (!ended) LogWarning("the lease could not be given back; it ends by itself", {{"detail", ended.error().detail}});
}

bool Lease::is_fresh() const {
  const auto age = std::chrono::steady_clock::duration(Ticks() - renewed_at_.load());
  return age < kStale;
}

void Lease::Watch(std::function<void()> look) {
  const std::lock_guard lock(mutex_);
  watcher_ = std::move(look);
}

void Lease::LookNow() {
  {
    const std::lock_guard lock(mutex_);
    look_now_ = true;
  }
  changed_.notify_all();
}

void Lease::Work() {
  using Clock = std::chrono::steady_clock;
  auto renewal = Clock::now() + kRenewal, look = Clock::now() + kLook, sweep = Clock::now() + kSweep;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_until(lock, std::min(renewal, look), [this] { return stopping_ || look_now_; });
    if (stopping_) return;
    const bool look_due = std::exchange(look_now_, false) || Clock::now() >= look;
    lock.unlock();
    if (Clock::now() >= renewal) {
      Renew();
      renewal = Clock::now() + kRenewal;
    }
    if (look_due) {
      Look();
      look = Clock::now() + kLook;
    }
    if (Clock::now() >= sweep) {
      Sweep();
      sweep = Clock::now() + kSweep;
    }
    lock.lock();
  }
}

// One that was declared dead lives on: what others have taken up is theirs, as the tokens say.
void Lease::Renew() {
  const auto sent = Ticks();
  const auto renewed =
      database_.Execute({.sql = "with before as (select dead from reprise.instances where id = $1::uuid) "
                                "insert into reprise.instances(id, lease_until, version) values ($1::uuid, "
                                "clock_timestamp() + $2::interval, $3) "
                                "on conflict (id) do update set lease_until = excluded.lease_until, dead = false "
                                "returning coalesce((select dead from before), true)",
                         .values = {instance_, kLength, version_}});
  if (!renewed) return LogWarning("the lease could not be renewed", {{"detail", renewed.error().detail}});
  renewed_at_ = sent;
  if (renewed->truth(0, 0)) LogWarning("this server was taken for dead; others may have taken up runs of it");
}

// What is left of runs that have ended: whoever follows one has read it by now.
void Lease::Sweep() {
  const auto swept = database_.Execute(
      {.sql = "with gone as (delete from reprise.runs where ended_at < clock_timestamp() - interval '1 minute' "
              "  returning tenant, chat, number), "
              "q as (delete from reprise.questions q using gone where (q.tenant, q.chat, q.number) = (gone.tenant, "
              "gone.chat, gone.number)) "
              "delete from reprise.journal j using gone where (j.tenant, j.chat, j.number) = (gone.tenant, gone.chat, "
              "gone.number)"});
  if (!swept) LogWarning("what is left of runs could not be removed", {{"detail", swept.error().detail}});
}

void Lease::Look() {
  const auto declared = database_.Execute({.sql = "update reprise.instances set dead = true where not dead and "
                                                  "lease_until < clock_timestamp() and id <> $1::uuid "
                                                  "returning id::text",
                                           .values = {instance_}});
  if (declared) {
    for (std::size_t row = 0; row < declared->size(); ++row) {
      LogWarning("another server's lease has ended; its runs are taken up", {{"instance", declared->text(row, 0)}});
    }
  }
  const auto wanted = database_.Execute(
      {.sql =
           "select exists (select 1 from reprise.runs r where state = 'running' and not exists (select 1 from "
           "reprise.instances i "
           "  where i.id = r.owner and not i.dead)) "
           "or exists (select 1 from reprise.runs r where owner = $1::uuid and (stop_reason is not null or exists "
           "  (select 1 from reprise.questions q where q.tenant = r.tenant and q.chat = r.chat and q.number = r.number "
           "  and q.answer is not null)))",
       .values = {instance_}});
  if (!wanted || !wanted->truth(0, 0)) return;
  const std::lock_guard lock(mutex_);
  if (watcher_) watcher_();
}

}  // namespace reprise
