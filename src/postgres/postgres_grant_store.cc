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

Result<bool> PostgresGrantStore::Add(const StandingGrant& grant) {
  const std::string id = GrantId(grant.grant);
  std::string record = StandingGrantText(grant);
  if (keys_) record = TRY(SealJwe({{"typ", kGrantType}, {"ver", kGrantVersion}}, record, *keys_));
  const Rows count = TRY(database_.Execute(
      {.sql = "select count(*) from reprise.grants where tenant = $1", .values = {database_.tenant()}}));
  if (count.number(0, 0) >= static_cast<std::int64_t>(kMaxStandingGrants)) {
    return Fail(ErrorCode::kTooLarge, "there are too many grants for always");
  }
  const Rows added =
      TRY(database_.Execute({.sql = "insert into reprise.grants(tenant, id, record) values ($1, $2, $3) on conflict do "
                                    "nothing returning 1",
                             .values = {database_.tenant(), id, SqlValue::Bytes(std::move(record))}}));
  return !added.empty();
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
    grants.push_back(TRY(Open(rows.text(row, 0), rows.text(row, 1))));
  }
  return grants;
}

bool PostgresGrantStore::Covers(const Grant& call) {
  if (call.terms_digest.empty()) return false;
  const std::string id = GrantId(call);
  const auto rows = database_.Execute(
      {.sql = "select record from reprise.grants where tenant = $1 and id = $2", .values = {database_.tenant(), id}});
  if (!rows) LogWarning("what was granted for always cannot be read", {{"detail", rows.error().detail}});
  if (!rows || rows->empty()) return false;
  const auto grant = Open(id, rows->text(0, 0));
  if (!grant)
    LogError("what was granted for always cannot be read, and does not count", {{"error", grant.error().message}});
  return grant && grant->grant == call;
}

Result<StandingGrant> PostgresGrantStore::Open(std::string_view id, std::string_view record) const {
  const std::string text = TRY(OpenLoneRecord(record, kName, kGrantType, kGrantVersion, keys_.get()));
  StandingGrant grant = TRY(ParseStandingGrant(text));
  if (GrantId(grant.grant) != id) return Fail(LoneRecordDamage(kName, "swap", "it is another one"));
  return grant;
}

}  // namespace reprise
