#pragma once

#include <functional>

#include "engine/moves/sqlite_file.h"

// Databases in which tools keep their sessions. Each session is given in the form in which the tool exports it.
namespace reprise {

// Gets a session, or why this one cannot be read: kTooLarge (over kMaxSourceRecord), kNotFound (gone meanwhile).
using VisitStored = std::function<Result<void>(Result<Json> session)>;

// sessions.db of goose, as ReadGooseExport takes it; "sub_agents" names the sessions below it. One session is in memory
// at a time. kInvalidArgument (reason "invalid_document"), kIo; so for the others.
Result<void> ForEachGooseSession(const SqliteFile& file, const VisitStored& visit);
// opencode.db, as ReadOpenCode takes it; "sub_agents" has the messages of sessions below it, by id; null if they are
// too deep.
Result<void> ForEachOpenCodeSession(const SqliteFile& file, const VisitStored& visit);

}  // namespace reprise
