#pragma once

#include "postgres/database.h"
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

}  // namespace reprise
