#pragma once

#include <cstddef>
#include <string>

#include "remote/postgres/database.h"
#include "reprise/result.h"

namespace reprise {

// The tables in a database, and how far they have come. Each migration is one transaction.
struct SchemaStatus {
  int there = 0;  // 0: none of ours
  int known = 0;  // to this program
  bool is_current() const { return there == known; }
};
Result<SchemaStatus> ReadSchemaStatus(Database& database);
// Makes what is missing; nothing if it is current. kConflict (reason "newer_schema") if a newer program made it.
Result<SchemaStatus> MigrateSchema(Database& database);
// kConflict (reasons "no_schema", "old_schema", "newer_schema", with the command that helps) unless it is current.
Result<void> CheckSchema(Database& database);

// Deletes an org's key, and then all rows of its users; how many users it had. kConflict if a server uses the database:
// it has the key in its memory.
Result<std::size_t> DeleteOrgRows(const std::string& url, const std::string& org);

}  // namespace reprise
