#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "crypto/digest.h"
#include "engine/moves/session.h"
#include "engine/moves/sqlite_file.h"

// Databases in which tools keep their sessions, of which no more than a message is in memory.
namespace reprise {

struct StoredSession {
  std::unique_ptr<MovedSession> session;  // kConflict if it changes while it is read; kTooLarge
  Sha256Sum sum;                          // of what it holds, and
  std::size_t bytes;                      // how much that is
};
// Gets a session, or why this one cannot be read: kTooLarge (a message, over kMaxSourceRecord), kNotFound (gone
// meanwhile), kConflict (changed meanwhile). Other failures are of the database.
using VisitStored = std::function<Result<void>(Result<StoredSession> session)>;

// sessions.db of goose: each session but the sub-agents of others. kInvalidArgument (reason "invalid_document"), kIo;
// so for the others.
Result<void> ForEachGooseSession(const std::shared_ptr<const SqliteFile>& file, const VisitStored& visit);
// opencode.db: each session with its sub-agents, unless they are too deep.
Result<void> ForEachOpenCodeSession(const std::shared_ptr<const SqliteFile>& file, const VisitStored& visit);

}  // namespace reprise
