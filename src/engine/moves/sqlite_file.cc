#include "engine/moves/sqlite_file.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/shared_library.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxSchema = 1 << 20;  // that is read of one
constexpr std::size_t kRowSize = 128;        // in memory, besides its texts

// Looked up at run time, because only an import of a few tools needs it.
struct SqliteLibrary : SharedLibrary {
  SqliteLibrary() : SharedLibrary(kSqliteLibrary) {}

  decltype(&::sqlite3_open_v2) open = Find("sqlite3_open_v2");
  decltype(&::sqlite3_close_v2) close = Find("sqlite3_close_v2");
  decltype(&::sqlite3_db_config) configure = Find("sqlite3_db_config");
  decltype(&::sqlite3_limit) limit = Find("sqlite3_limit");
  decltype(&::sqlite3_busy_timeout) busy_timeout = Find("sqlite3_busy_timeout");
  decltype(&::sqlite3_progress_handler) progress_handler = Find("sqlite3_progress_handler");
  decltype(&::sqlite3_errmsg) message = Find("sqlite3_errmsg");
  decltype(&::sqlite3_errcode) code = Find("sqlite3_errcode");
  decltype(&::sqlite3_prepare_v2) prepare = Find("sqlite3_prepare_v2");
  decltype(&::sqlite3_finalize) finalize = Find("sqlite3_finalize");
  decltype(&::sqlite3_bind_text) bind_text = Find("sqlite3_bind_text");
  decltype(&::sqlite3_reset) reset = Find("sqlite3_reset");
  decltype(&::sqlite3_step) step = Find("sqlite3_step");
  decltype(&::sqlite3_column_count) column_count = Find("sqlite3_column_count");
  decltype(&::sqlite3_column_name) column_name = Find("sqlite3_column_name");
  decltype(&::sqlite3_column_type) column_type = Find("sqlite3_column_type");
  decltype(&::sqlite3_column_text) column_text = Find("sqlite3_column_text");
  decltype(&::sqlite3_column_bytes) column_bytes = Find("sqlite3_column_bytes");
  decltype(&::sqlite3_column_int64) column_int64 = Find("sqlite3_column_int64");
  decltype(&::sqlite3_column_double) column_double = Find("sqlite3_column_double");
};

const SqliteLibrary& Library() {
  static const SqliteLibrary library;
  return library;
}

std::string NameOfFile(const std::string& path, const char* parameters) {
  std::string uri = "file:";
  for (const char c : path) {
    uri += c == '%' ? "%25" : c == '?' ? "%3f" : c == '#' ? "%23" : std::string(1, c);
  }
  return uri + parameters;
}

FileState StateAt(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) != 0 ? FileState() : StateOf(facts);
}

// Where nothing can be written beside a database, SQLite could not even take the locks of its log; and without a log or
// a journal there, nobody was at work on it.
bool NeedsNoLocks(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(path, failed);
  if (failed) return false;
  for (const char* suffix : {"-wal", "-journal"}) {
    if (std::filesystem::exists(real.string() + suffix, failed) || failed) return false;
  }
  return ::access(real.parent_path().c_str(), W_OK) != 0;
}

// The value of a column; null if it is NULL or bytes.
Json ValueIn(sqlite3_stmt* row, int column) {
  const SqliteLibrary& library = Library();
  switch (library.column_type(row, column)) {
    case SQLITE_INTEGER:
      return library.column_int64(row, column);
    case SQLITE_FLOAT:
      return library.column_double(row, column);
    case SQLITE_TEXT: {
      const auto* const text = reinterpret_cast<const char*>(library.column_text(row, column));
      const auto size = static_cast<std::size_t>(library.column_bytes(row, column));
      return text == nullptr ? Json() : Json(ToValidUtf8({text, size}));
    }
    default:
      return {};
  }
}

}  // namespace

void SqliteFile::Closer::operator()(sqlite3* database) const { Library().close(database); }
void SqliteFile::Closer::operator()(sqlite3_stmt* statement) const { Library().finalize(statement); }

Result<bool> SqliteFile::Is(const SourceText& source) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  return TRY(source.Read(0, kMagic.size())) == kMagic;
}

tl::unexpected<Error> SqliteFile::Wrong() const {
  const SqliteLibrary& library = Library();
  switch (library.code(database_.get())) {
    case SQLITE_BUSY:
      return InUse();
    case SQLITE_READONLY:  // what its writer left must be undone first
      return Fail(ErrorCode::kIo, path_ + " was left within a change: start the tool, close it and try again");
    case SQLITE_TOOBIG:
      return Fail(ErrorCode::kTooLarge, path_ + ": a value is too large");
    default:
      break;
  }
  return Fail(Reason::kInvalidDocument, path_ + ": " + ToValidUtf8(library.message(database_.get())));
}

tl::unexpected<Error> SqliteFile::InUse() const {
  return Fail(ErrorCode::kIo, path_ + " is in use: close the tool and try again");
}

Result<std::unique_ptr<SqliteFile>> SqliteFile::Open(const std::string& path) {
  const SqliteLibrary& library = Library();
  if (!library.problem().empty()) {
    return Fail(ErrorCode::kUnavailable,
                path + " is a SQLite database, and libsqlite3 is missing: install libsqlite3-0", library.problem());
  }
  std::unique_ptr<SqliteFile> file(new SqliteFile(path));
  if (NeedsNoLocks(path)) file->unlocked_ = StateAt(path);
  sqlite3* database = nullptr;
  const int opened = library.open(NameOfFile(path, file->unlocked_ ? "?mode=ro&immutable=1" : "?mode=ro").c_str(),
                                  &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  file->database_.reset(database);
  if (database == nullptr) return Fail(ErrorCode::kIo, path + " cannot be read", "no memory");
  if (opened != SQLITE_OK) return file->Wrong();
  constexpr int kMostMilliseconds = 2000, kMostColumns = 200;
  library.configure(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  library.configure(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  library.limit(database, SQLITE_LIMIT_LENGTH, static_cast<int>(kMaxSourceRecord));
  library.limit(database, SQLITE_LIMIT_COLUMN, kMostColumns);
  library.busy_timeout(database, kMostMilliseconds);
  return file;
}

Result<bool> SqliteFile::HasTable(const std::string& name) const {
  bool has = false;
  std::size_t room = kMaxSchema;
  // A view has no page of its own, nor has a table that code makes up.
  TRY(ForEachRow("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = ?", name, room,
                 [&](const Json&) -> Result<void> {
                   has = true;
                   return {};
                 }));
  return has;
}

Result<std::string> SqliteFile::Select(const std::string& table, std::initializer_list<const char*> columns) const {
  if (!TRY(HasTable(table))) return Fail(Reason::kInvalidDocument, path_ + ": it has no table " + table);
  std::set<std::string> stored;
  std::size_t room = kMaxSchema;
  TRY(ForEachRow("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", table, room,
                 [&](const Json& row) -> Result<void> {
                   stored.insert(TextMember(row, "name"));
                   return {};
                 }));
  std::string names;
  for (const char* column : columns) {
    const bool is_place = std::string_view(column) == "rowid";  // which has another name if a column is the same
    if (is_place || stored.contains(column)) names += (names.empty() ? "" : ", ") + std::string(column);
    if (is_place) names += " AS rowid";
  }
  if (!stored.contains(*columns.begin())) {
    return Fail(Reason::kInvalidDocument, path_ + ": table " + table + " has no column " + *columns.begin());
  }
  return "SELECT " + names + " FROM " + table;
}

Result<sqlite3_stmt*> SqliteFile::Prepare(const std::string& select) const {
  Statement& statement = statements_[select];
  if (statement != nullptr) return statement.get();
  sqlite3_stmt* prepared = nullptr;
  const int found = Library().prepare(database_.get(), select.c_str(), -1, &prepared, nullptr);
  if (found != SQLITE_OK) return Wrong();
  statement.reset(prepared);
  return prepared;
}

Result<void> SqliteFile::ForEachRow(const std::string& select, const std::string& value, std::size_t& room,
                                    const std::function<Result<void>(Json row)>& visit) const {
  const SqliteLibrary& library = Library();
  const MutexLock lock(mutex_);
  sqlite3_stmt* const prepared = TRY(Prepare(select));
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> in_use(prepared, library.reset);
  library.bind_text(prepared, 1, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  constexpr int kSteps = 1'000'000, kMost = 200;  // of SQLite's machine, for a row: some seconds
  int used = 0;
  const auto give_up = [](void* count) { return ++*static_cast<int*>(count) > kMost ? 1 : 0; };
  library.progress_handler(database_.get(), kSteps, give_up, &used);
  int step = SQLITE_ROW;
  Result<void> visited;
  while (visited && (step = library.step(prepared)) == SQLITE_ROW) {
    used = 0;
    std::size_t size = kRowSize;
    for (int i = 0; i < library.column_count(prepared); ++i) {
      const bool is_text = library.column_type(prepared, i) == SQLITE_TEXT;
      size += is_text ? static_cast<std::size_t>(library.column_bytes(prepared, i)) : 0;
    }
    if (size > room) {
      visited = Fail(ErrorCode::kTooLarge, path_ + ": it has too much of this");
      break;
    }
    room -= size;
    Json row = Json::object();
    for (int i = 0; i < library.column_count(prepared); ++i) {
      const char* const name = library.column_name(prepared, i);
      Json each = ValueIn(prepared, i);
      if (name != nullptr && !each.is_null()) row[ToValidUtf8(name)] = std::move(each);
    }
    visited = visit(std::move(row));
  }
  library.progress_handler(database_.get(), 0, nullptr, nullptr);
  if (visited && step != SQLITE_DONE) return Wrong();
  if (visited && unlocked_ && StateAt(path_) != *unlocked_) return InUse();
  return visited;
}

}  // namespace reprise
