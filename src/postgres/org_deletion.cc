#include "postgres/org_deletion.h"

#include <vector>

#include "base/try.h"
#include "postgres/database.h"
#include "postgres/schema.h"
#include "postgres/tenant_database.h"

namespace reprise {
namespace {

// With the list of users last: who is interrupted can go on.
Result<std::vector<std::string>> TablesOfTenants(TenantDatabase& all) {
  const Rows rows = TRY(all.Execute(
      {.sql = "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relnamespace = "
              "'reprise'::regnamespace and c.relkind = 'r' and a.attname = 'tenant' and not a.attisdropped "
              "order by c.relname = 'tenants', c.relname"}));
  std::vector<std::string> tables;
  for (std::size_t row = 0; row < rows.size(); ++row) tables.emplace_back(rows.text(row, 0));
  return tables;
}

}  // namespace

Result<std::size_t> DeleteOrgRows(const std::string& url, const std::string& org) {
  const auto database = TRY(Database::Open({.url = url}));
  TRY(CheckSchema(*database));
  TenantDatabase all(*database, TenantDatabase::kAll);
  const Rows servers = TRY(all.Execute(
      {.sql = "select count(*) from reprise.instances where not dead and lease_until > clock_timestamp()"}));
  if (servers.number(0, 0) > 0) {
    return Fail(ErrorCode::kConflict,
                "an organization cannot be deleted while servers use the database; stop them first");
  }
  const Rows users = TRY(all.Execute({.sql = "select count(*) from reprise.tenants where org = $1", .values = {org}}));
  TRY(all.Execute({.sql = "delete from reprise.org_keys where org = $1", .values = {org}}));
  for (const std::string& table : TRY(TablesOfTenants(all))) {
    const std::string sql =
        "delete from reprise." + table + " where tenant in (select tenant from reprise.tenants where org = $1)";
    TRY(all.Execute({.sql = sql.c_str(), .values = {org}}));  // which waits for it
  }
  return static_cast<std::size_t>(users.number(0, 0));
}

}  // namespace reprise
