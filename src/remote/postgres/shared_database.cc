#include "remote/postgres/shared_database.h"

#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "remote/postgres/schema.h"
#include "store/data_folder.h"

namespace reprise {
namespace {

// A database is known by the time when its tables were made.
Result<std::string> TopicOfChanges(Database& database) {
  const Rows rows = TRY(database.Execute({.sql = "select md5(extract(epoch from applied_at)::text) from "
                                                 "reprise.schema_version where version = 1"}));
  return "changes_" + std::string(rows.text(0, 0));
}

}  // namespace

Result<std::unique_ptr<SharedDatabase>> SharedDatabase::Open(Options options) {
  std::unique_ptr<SharedDatabase> shared(new SharedDatabase);
  constexpr std::size_t kMoreConnections = 16;
  shared->database_ = TRY(Database::Open({.url = options.url, .more_connections = kMoreConnections}));
  TRY(CheckSchema(*shared->database_));
  shared->finishes_ = TRY(Database::Open({.url = options.url}));
  shared->all_ = std::make_unique<TenantDatabase>(*shared->database_, TenantDatabase::kAll);
  shared->lease_database_ = TRY(Database::Open({.url = options.url}));
  shared->lease_ = TRY(Lease::Take(*shared->lease_database_, Lease::MakeInstance(), options.version));
  Lease& lease = *shared->lease_;
  if (options.signals) shared->signals_ = options.signals;
  shared->topic_of_changes_ = TRY(TopicOfChanges(*shared->database_));
  shared->run_signals_ = std::make_shared<RunSignals>(*shared->database_, *shared->signals_, lease.instance(),
                                                      [&lease] { lease.LookNow(); });
  shared->journal_writer_ = std::make_shared<JournalWriter>(*shared->database_);
  lease.EverySecond([raw = shared.get()] {
    raw->run_signals_->LookEverySecond();
    const MutexLock lock(raw->every_second_mutex_);
    for (const auto& call : raw->every_second_) call();
  });
  return shared;
}

std::shared_ptr<void> SharedDatabase::EverySecond(std::function<void()> call) {
  const MutexLock lock(every_second_mutex_);
  const auto place = every_second_.insert(every_second_.end(), std::move(call));
  return {nullptr, [this, place](void*) {
            const MutexLock gone(every_second_mutex_);
            every_second_.erase(place);
          }};
}

SharedDatabase::~SharedDatabase() {
  if (lease_) lease_->EverySecond({});
}

Result<void> SharedDatabase::CheckReady() {
  if (database_->is_connected() && lease_->is_fresh()) return {};
  return Fail(Reason::kDatabaseUnavailable, "the database cannot be reached");
}

void SharedDatabase::BeginStop() {
  database_->BeginStop();
  finishes_->BeginStop();
  lease_database_->BeginStop();
}

// --- tenants ---------------------------------------------------------------------------------------------------------

Result<void> SharedDatabase::NoteTenant(const std::string& tenant, const Principal& principal) {
  TRY(all_->Execute({.sql = "insert into reprise.tenants(tenant, org, name) values ($1, $2, $3) on conflict do nothing",
                     .values = {tenant, principal.org, principal.user}}));
  const auto known =
      TRY(ReadTenants({.sql = "select org, name from reprise.tenants where tenant = $1", .values = {tenant}}));
  if (known.size() == 1 && known[0].org == principal.org && known[0].user == principal.user) return {};
  return Fail(Reason::kIntegritySwap, "the rows of this user say that they are another's", tenant);
}

Result<std::vector<Principal>> SharedDatabase::ReadTenants(Statement statement) {
  const Rows rows = TRY(all_->Execute(std::move(statement)));
  std::vector<Principal> tenants;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    tenants.push_back({.role = Principal::Role::kUser,
                       .org = std::string(rows.text(row, 0)),
                       .user = std::string(rows.text(row, 1))});
  }
  return tenants;
}

Result<std::string> SharedDatabase::OrgKey(const std::string& org, const std::string& fresh, const KeySet& operators) {
  const Statement ask{.sql = "select record from reprise.org_keys where org = $1", .values = {org}};
  Rows rows = TRY(all_->Execute(ask));
  if (rows.empty()) {
    const Rows sample = TRY(all_->Execute(
        {.sql =
             "select index_record from reprise.chats c join reprise.tenants t on t.tenant = c.tenant where t.org = $1 "
             "and index_record is not null limit 16",
         .values = {org}}));
    for (std::size_t row = 0; row < sample.size(); ++row) {
      const auto kid = SealedBy(sample.text(row, 0));
      if (kid && !kid->empty() && operators.Find(*kid) == nullptr) return std::string();
    }
    TRY(all_->Execute({.sql = "insert into reprise.org_keys(org, record) values ($1, $2) on conflict do nothing",
                       .values = {org, SqlValue::Bytes(fresh)}}));
    rows = TRY(all_->Execute(ask));
  }
  if (rows.empty()) return Fail(ErrorCode::kNotFound, "the org was deleted");
  return std::string(rows.text(0, 0));
}

Result<std::vector<Principal>> SharedDatabase::ListTenants() {
  return ReadTenants({.sql = "select org, name from reprise.tenants order by org, name"});
}

Result<std::vector<Principal>> SharedDatabase::ListLeft() {
  return ReadTenants(
      {.sql = "select org, name from reprise.tenants t where exists (select 1 from reprise.queue q where q.tenant = "
              "t.tenant) or exists (select 1 from reprise.queued q where q.tenant = t.tenant and q.taken is null and "
              "not exists (select 1 from reprise.instances i where i.id = q.owner and not i.dead)) or exists (select 1 "
              "from reprise.runs r where r.tenant = t.tenant and r.state = 'running' and "
              "not exists (select 1 from reprise.instances i where i.id = r.owner and not i.dead))"});
}

void SharedDatabase::WatchLeft(std::function<void(const Principal&)> left) {
  if (!left) return lease_->WatchOthers({});
  lease_->WatchOthers([this, left = std::move(left)](const std::string& tenant) {
    // Does not wait for the answer, because the lease has to be renewed.
    all_->Submit({.sql = "select org, name from reprise.tenants where tenant = $1", .values = {tenant}},
                 [left](const Result<Rows>& rows) {
                   if (!rows) return LogWarning("a tenant could not be looked up", {{"detail", rows.error().detail}});
                   if (rows->empty()) return;
                   left({.role = Principal::Role::kUser,
                         .org = std::string(rows->text(0, 0)),
                         .user = std::string(rows->text(0, 1))});
                 });
  });
}

}  // namespace reprise
