#include "postgres/postgres_grant_store.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/grant_file.h"
#include "store/head_file.h"

namespace reprise {
namespace {

constexpr int kGrantVersion = 1;
constexpr std::string_view kGrantType = "reprise/grant", kName = "a standing grant";

}  // namespace

Result<std::string> PostgresGrantStore::Seal(const StandingGrant& grant) const {
  std::string record = StandingGrantText(grant);
  if (keys_) return SealJwe({{"typ", kGrantType}, {"ver", kGrantVersion}}, record, *keys_);
  return record;
}

Result<bool> PostgresGrantStore::Add(const StandingGrant& grant) {
  const std::string id = GrantId(grant.grant);
  std::string record = TRY(Seal(grant));
  const Rows count = TRY(database_.Execute(
      {.sql = "select count(*) from reprise.grants where tenant = $1", .values = {database_.tenant()}}));
  if (count.number(0, 0) >= static_cast<std::int64_t>(kMaxStandingGrants)) {
    return Fail(ErrorCode::kTooLarge, "there are too many grants for always");
  }
  const Rows there = TRY(database_.Execute(
      {.sql = "select record from reprise.grants where tenant = $1 and id = $2", .values = {database_.tenant(), id}}));
  const auto last = there.empty() ? std::nullopt : std::optional(Open(id, there.text(0, 0)));
  const bool was_there = last && *last && !(*last)->grant.has_expired(Now());
  if (was_there && (*last)->grant.expires_at == grant.grant.expires_at && (*last)->grant.means == grant.grant.means)
    return false;
  TRY(database_.Execute({.sql = "insert into reprise.grants(tenant, id, record) values ($1, $2, $3) "
                                "on conflict (tenant, id) do update set record = excluded.record",
                         .values = {database_.tenant(), id, SqlValue::Bytes(std::move(record))}}));
  return !was_there;
}

Result<void> PostgresGrantStore::Remove(std::string_view id) {
  const Rows removed =
      TRY(database_.Execute({.sql = "delete from reprise.grants where tenant = $1 and id = $2 returning 1",
                             .values = {database_.tenant(), std::string(id)}}));
  if (removed.empty()) return Fail(ErrorCode::kNotFound, "there is no such grant");
  return {};
}

Result<std::vector<StandingGrant>> PostgresGrantStore::List() {
  const Rows rows =
      TRY(database_.Execute({.sql = "select id, record from reprise.grants where tenant = $1 order by created_at, id",
                             .values = {database_.tenant()}}));
  std::vector<StandingGrant> grants;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    auto grant = TRY(Open(rows.text(row, 0), rows.text(row, 1)));
    if (!grant.grant.has_expired(Now())) grants.push_back(std::move(grant));
  }
  return grants;
}

std::vector<Grant> PostgresGrantStore::For(const Grant& call) {
  std::vector<Grant> found;
  if (call.terms_digest.empty()) return found;
  // The names say what a pattern is for: rows hold no text that could be looked for.
  const auto rows =
      database_.Execute({.sql = "select id, record from reprise.grants where tenant = $1 and (id = $2 or id like $3)",
                         .values = {database_.tenant(), GrantId(call), PatternGrantPrefix(call) + "%"}});
  if (!rows) LogWarning("what was granted for always cannot be read", {{"detail", rows.error().detail}});
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    const auto grant = Open(rows->text(row, 0), rows->text(row, 1));
    if (!grant) {
      LogError("what was granted for always cannot be read, and does not count", {{"error", grant.error().message}});
    } else if (BearsOn(grant->grant, call, Now())) {
      found.push_back(grant->grant);
    }
  }
  return found;
}

void PostgresGrantStore::NoteUse(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    const auto rows = database_.Execute(
        {.sql = "select record from reprise.grants where tenant = $1 and id = $2", .values = {database_.tenant(), id}});
    if (!rows || rows->empty()) continue;
    auto grant = Open(id, rows->text(0, 0));
    if (!grant) continue;
    ++grant->grant.uses;
    grant->grant.used_at = Now();
    auto record = Seal(*grant);
    if (!record) continue;
    // Two servers may count at once, and one of the two uses is lost; a grant that was revoked meanwhile stays so.
    static_cast<void>(database_.Execute({.sql = "update reprise.grants set record = $3 where tenant = $1 and id = $2",
                                         .values = {database_.tenant(), id, SqlValue::Bytes(*std::move(record))}}));
  }
}

Result<StandingGrant> PostgresGrantStore::Open(std::string_view id, std::string_view record) const {
  const std::string text = TRY(OpenLoneRecord(record, kName, kGrantType, kGrantVersion, keys_.get()));
  StandingGrant grant = TRY(ParseStandingGrant(text));
  if (GrantId(grant.grant) != id) return Fail(LoneRecordDamage(kName, "swap", "it is another one"));
  return grant;
}

}  // namespace reprise
