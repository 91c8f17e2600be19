#include "app/database_checks.h"

#include <string>

#include "postgres/database.h"
#include "postgres/schema.h"

namespace reprise {
namespace {

constexpr const char* kDatabaseCheck = "database";
constexpr const char* kListenCheck = "database for listening";
constexpr const char* kRowSecurityCheck = "row-level security";

Finding Failed(const char* check, const Error& error) {
  const std::string& detail = error.detail;
  return {check, Verdict::kFailure, error.message + (detail.empty() ? "" : " (" + detail + ")")};
}

// The second lock between users does not hold a superuser.
Finding CheckRowSecurity(Database& database) {
  const auto role = database.Execute(
      {.sql = "select current_user::text, rolsuper or rolbypassrls from pg_roles where rolname = current_user"});
  if (!role) return Failed(kRowSecurityCheck, role.error());
  if (!role->empty() && role->truth(0, 1)) {
    return {kRowSecurityCheck, Verdict::kWarning,
            "does not hold the database's role " + std::string(role->text(0, 0)) +
                ", which may see all rows: give the server one that is no superuser"};
  }
  return {kRowSecurityCheck, Verdict::kOk, "holds the database's role"};
}

// How servers hear of each other without Redis.
Finding CheckListening(const std::string& url) {
  const auto database = Database::Open({.url = url});
  if (!database) return Failed(kListenCheck, database.error());
  const auto answer = (*database)->Execute({.sql = "select 1"});
  if (!answer) return Failed(kListenCheck, answer.error());
  return {kListenCheck, Verdict::kOk, "store.listen_url lets this server in"};
}

}  // namespace

std::vector<Finding> CheckDatabase(const Options& options) {
  if (options.store.type != StoreOptions::Type::kPostgres) return {};
  const auto database = Database::Open({.url = options.store.url});
  if (!database) return {Failed(kDatabaseCheck, database.error())};
  const auto tables = CheckSchema(**database);
  if (!tables) return {Failed(kDatabaseCheck, tables.error())};
  std::vector<Finding> findings = {{kDatabaseCheck, Verdict::kOk, "it lets this server in, and has its tables"},
                                   CheckRowSecurity(**database)};
  if (!options.store.listen_url.empty()) findings.push_back(CheckListening(options.store.listen_url));
  return findings;
}

}  // namespace reprise
