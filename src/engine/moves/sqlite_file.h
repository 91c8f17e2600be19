#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "engine/moves/source_text.h"
#include "reprise/result.h"

struct sqlite3;

namespace reprise {

// A SQLite database of another program, which may be at work on it. It is only read, and trusted in nothing: a view is
// no table, and what takes too long is given up. Not thread-safe.
class SqliteFile {
 public:
  // Whether it begins like one.
  static Result<bool> Is(const SourceText& source);
  // kInvalidArgument (reason "invalid_document") if it is none; kUnavailable if libsqlite3 is missing; kIo.
  static Result<std::unique_ptr<SqliteFile>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  Result<bool> HasTable(const std::string& name) const;
  // The rows of a SELECT, whose only parameter is `value`: objects by the names of the columns, without those that are
  // NULL or of bytes. Until `visit` fails. kInvalidArgument (reason "invalid_document"), kIo.
  Result<void> ForEachRow(const char* select, const std::string& value,
                          const std::function<Result<void>(Json row)>& visit) const;

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
  };
  explicit SqliteFile(std::string path) : path_(std::move(path)) {}
  tl::unexpected<Error> Wrong() const;

  const std::string path_;
  std::unique_ptr<sqlite3, Closer> database_;
};

}  // namespace reprise
