#pragma once

#include <cstddef>
#include <string>

#include "remote/postgres/database.h"
#include "reprise/result.h"

namespace reprise {

// The version of the tables in a database. Each migration is one transaction.
struct SchemaStatus {
  int there = 0;  // 0: none of ours
  int known = 0;  // to this program
  bool is_current() const { return there == known; }
};
Result<SchemaStatus> ReadSchemaStatus(Database& database);
// Applies the migrations that are missing. kConflict (reason "newer_schema") if a newer program made the tables.
Result<SchemaStatus> MigrateSchema(Database& database);
// kConflict (reasons "no_schema", "old_schema", "newer_schema", with the command that helps) unless it is current.
Result<void> CheckSchema(Database& database);

// Deletes an org's key, and then all rows of its users; returns their number. kConflict if a server uses the database,
// because it has the key in its memory.
Result<std::size_t> DeleteOrgRows(const std::string& url, const std::string& org);

}  // namespace reprise
