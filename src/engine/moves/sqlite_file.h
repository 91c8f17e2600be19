#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/mutex.h"
#include "engine/moves/source_text.h"
#include "reprise/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace reprise {

// A SQLite database of another program, which may be at work on it. It is only read, and trusted in nothing: a view is
// no table, and what takes too long is given up. Thread-safe.
class SqliteFile {
 public:
  // Whether it begins like one.
  static Result<bool> Is(const SourceText& source);
  // kInvalidArgument (reason "invalid_document") if it is none; kUnavailable if libsqlite3 is missing; kIo.
  static Result<std::unique_ptr<SqliteFile>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  Result<bool> HasTable(const std::string& name) const;
  // "SELECT ... FROM table" with those of the columns that the table stores, and rowid; the first must be stored. A
  // generated column is none, because its expression could make up anything. kInvalidArgument (reason
  // "invalid_document"), kIo.
  Result<std::string> Select(const std::string& table, std::initializer_list<const char*> columns) const;
  // The rows of a SELECT, whose only parameter is `value`: objects by the names of the columns, without those that are
  // NULL or of bytes. Until `visit` fails, which must not read from the file. `room` is how many bytes may be read, and
  // what is left of them: kTooLarge before more is copied. kInvalidArgument (reason "invalid_document"), kIo (also if
  // another program is at work on it).
  Result<void> ForEachRow(const std::string& select, const std::string& value, std::size_t& room,
                          const std::function<Result<void>(Json row)>& visit) const;

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Closer>;
  explicit SqliteFile(std::string path) : path_(std::move(path)) {}
  tl::unexpected<Error> Wrong() const;
  tl::unexpected<Error> InUse() const;
  Result<sqlite3_stmt*> Prepare(const std::string& select) const REQUIRES(mutex_);

  const std::string path_;
  std::optional<FileState> unlocked_;  // when it was opened, if it is read without locks
  std::unique_ptr<sqlite3, Closer> database_;
  mutable Mutex mutex_;  // of the database and
  mutable std::map<std::string, Statement> statements_ GUARDED_BY(mutex_);
};

}  // namespace reprise
