#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "remote/postgres/database.h"

namespace reprise {

// The database for one tenant: each statement names the tenant, and row-level security (remote/postgres/schema) shows
// it no row of another one, whatever it asks for. The name of the single user is empty. Thread-safe.
class TenantDatabase {
 public:
  // For a server's work for all tenants: leases, abandoned runs, the list of tenants.
  static constexpr const char* kAll = "*";

  // `database` must outlive it.
  TenantDatabase(Database& database, std::string tenant) : database_(database), tenant_(std::move(tenant)) {}

  const std::string& tenant() const { return tenant_; }
  bool is_connected() const { return database_.is_connected(); }
  void Submit(Statement statement, Database::Done done) {
    statement.tenant = tenant_;
    database_.Submit(std::move(statement), std::move(done));
  }
  Result<Rows> Execute(Statement statement) {
    statement.tenant = tenant_;
    return database_.Execute(std::move(statement));
  }
  Result<Rows> ExecuteInOrder(Statement statement) {
    statement.tenant = tenant_;
    return database_.ExecuteInOrder(std::move(statement));
  }

  void CallLater(std::chrono::milliseconds pause, std::function<void()> call) {
    database_.CallLater(pause, std::move(call));
  }

 private:
  Database& database_;
  const std::string tenant_;
};

}  // namespace reprise
