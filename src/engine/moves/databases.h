#pragma once

#include <functional>

#include "engine/moves/sqlite_file.h"

// Databases in which tools keep their sessions. Each session is given in the form in which the tool exports it.
namespace reprise {

using VisitStored = std::function<Result<void>(const Json& session)>;

// sessions.db of goose, as ReadGooseExport takes it. A session over kMaxSourceRecord is kInvalidArgument (reason
// "invalid_document"); so for the others.
Result<void> ForEachGooseSession(const SqliteFile& file, const VisitStored& visit);
// opencode.db, as ReadOpenCode takes it; "sub_agents" has the messages of sessions below it, by id.
Result<void> ForEachOpenCodeSession(const SqliteFile& file, const VisitStored& visit);

}  // namespace reprise
