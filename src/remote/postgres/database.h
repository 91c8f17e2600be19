#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "remote/postgres/postgres_library.h"
#include "reprise/result.h"

namespace reprise {

// The result of one statement. Values are read as the type that the statement gives them: it must cast everything that
// is not text, bytea, boolean, int or bigint.
class Rows {
 public:
  Rows() = default;
  Rows(const PostgresLibrary& library, PGresult* result)
      : library_(&library), result_(result, [&library](PGresult* old) { library.clear(old); }) {}

  std::size_t size() const { return result_ ? static_cast<std::size_t>(library_->rows(result_.get())) : 0; }
  bool empty() const { return size() == 0; }
  bool is_null(std::size_t row, int column) const;
  // Text or bytea as it is; valid as long as this object or a copy of it lives.
  std::string_view text(std::size_t row, int column) const;
  // Of an int or a bigint.
  std::int64_t number(std::size_t row, int column) const;
  bool truth(std::size_t row, int column) const { return text(row, column) == std::string_view("\1", 1); }

 private:
  const PostgresLibrary* library_ = nullptr;
  std::shared_ptr<PGresult> result_;
};

// A value for a statement's $1, $2 and so on. The statement must cast it unless it is text.
class SqlValue {
 public:
  SqlValue(std::string text) : text_(std::move(text)) {}            // NOLINT: converts implicitly
  SqlValue(const char* text) : text_(text) {}                       // NOLINT
  SqlValue(std::int64_t number) : text_(std::to_string(number)) {}  // NOLINT
  static SqlValue Null() { return SqlValue(std::nullopt, false); }
  static SqlValue Bytes(std::string bytes) { return SqlValue(std::move(bytes), true); }
  // A text[], int[], uuid[] (of 32 hexadecimal digits each) or bytea[].
  static SqlValue Texts(const std::vector<std::string>& list);
  static SqlValue Ints(const std::vector<std::int64_t>& list);
  static SqlValue Uuids(const std::vector<std::string>& list);
  static SqlValue ByteStrings(const std::vector<std::string>& list);
  template <typename Optional>
  static SqlValue OrNull(const Optional& value) {
    return value ? SqlValue(*value) : Null();
  }

  const char* data() const { return text_ ? text_->c_str() : nullptr; }
  int size() const { return text_ ? static_cast<int>(text_->size()) : 0; }
  bool is_binary() const { return is_binary_; }

 private:
  SqlValue(std::optional<std::string> text, bool is_binary) : text_(std::move(text)), is_binary_(is_binary) {}

  std::optional<std::string> text_;
  bool is_binary_ = false;
};

// One statement, which is a transaction of its own.
struct Statement {
  const char* sql;  // must stay valid, as a literal does
  std::vector<SqlValue> values{};
  // Whether it waits for a connection without a limit, or gives up after some seconds (kUnavailable, retryable).
  bool is_patient = false;
  // Whether it may share a transaction with others that may: those that wait together are committed together. If one of
  // them fails, the others are repeated without it. It must not wait for a lock that is held for long, and must ask for
  // the same kind of commit as the others on this connection.
  bool may_share = false;
  std::string tenant{};  // the owner of the rows it may touch (TenantDatabase); empty: the single user
};

// One connection to PostgreSQL in pipeline mode, made again when it is lost. The thread that submits a statement sends
// it, if the connection is free; the database's own thread reads the results and does all else. Statements run one
// after the other; those that may share a transaction and come while one is under way go together in the next one.
// Repeated statements are prepared, unless a pooler in between does not allow it. A statement whose outcome is unknown,
// because the connection was lost, is sent again, so each must have the same effect twice. Thread-safe.
class Database {
 public:
  struct Options {
    std::string url;  // postgresql://..., or another form that libpq takes
    // The first statements of each connection.
    std::vector<std::string> greetings{};
    // Beside the connection of Submit: for Execute, whose callers wait. They are made when that many are needed at
    // once, so that writers do not wait for each other's commits. 0: Execute uses the connection of Submit.
    std::size_t more_connections = 0;
    // Called for each notification, on the database's thread; must be quick.
    std::function<void(std::string_view channel, std::string_view payload)> on_notification{};
    // Called, likewise, when a connection is made: notifications may have been lost before.
    std::function<void()> on_connected{};
  };
  // kInvalidArgument if this cannot be the URL of a database. The message gives the reason without quoting the URL,
  // which may hold a password. kUnavailable: there is no libpq.
  static Result<void> CheckUrl(const std::string& url);
  // Fails as CheckUrl. Connects in the background.
  static Result<std::unique_ptr<Database>> Open(Options options);
  // Unfinished statements fail with kUnavailable (reason "stopping").
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // `done` is called once, on the database's thread, in the order of the calls (except for repeated statements); it
  // must be quick and may submit. kIo, kStorageFull, kUnavailable; the SQLSTATE is in `detail`.
  using Done = std::function<void(Result<Rows>)>;
  void Submit(Statement statement, Done done);
  // The same, and waits for it. May use another connection, so earlier submitted statements may still be under way.
  // REQUIRES: not on the database's thread.
  Result<Rows> Execute(Statement statement);
  // The same over the connection of Submit, after the statements submitted before.
  Result<Rows> ExecuteInOrder(Statement statement);
  // Calls it later, on the database's thread; it must be quick. Dropped when the object is destroyed.
  void CallLater(std::chrono::milliseconds pause, std::function<void()> call);
  // From now on patient statements give up like others; without a connection, all give up after a second.
  void BeginStop();
  bool is_connected() const;
  bool is_stopping() const;

 private:
  using Clock = std::chrono::steady_clock;
  // The state of a statement on this connection.
  struct Known {
    enum class State { kSeen, kPreparing, kPrepared };
    State state = State::kSeen;
    std::string name{};
  };
  struct Job {
    Statement statement;
    Done done;
    Clock::time_point until;
    std::optional<Result<Rows>> outcome{};
    int queries = 0, ended = 0;  // numbers of queries sent for it, and of those whose results are read
    int prepares = -1;           // the number of the query that prepares something; -1: none
    Known* prepared = nullptr;   // the statement that it prepares
    Known* known = nullptr;      // the statement itself
  };
  // Jobs that are committed together.
  struct Transaction {
    std::vector<Job> jobs{};
    std::size_t reading = 0;  // the job whose results come next
    bool has_failed = false;
  };
  // Calls to make when connection_mutex_ is free again.
  struct News {
    std::vector<std::pair<Done, Result<Rows>>> outcomes{};
    std::vector<std::pair<std::string, std::string>> notifications{};
  };

  Database(const PostgresLibrary& library, Options options, UniqueFd wake);

  // Another connection. TakeHelper returns an idle one, a new one, or the one with the fewest callers.
  struct Helper {
    std::unique_ptr<Database> database;
    std::size_t waiting = 0;
  };
  Result<Helper*> TakeHelper();

  void Work();
  bool Connect();
  bool Greet() REQUIRES(connection_mutex_);
  void Disconnect(std::string_view why);
  void SendNow();
  // All return false if the connection is lost.
  bool SendWhatWaits() REQUIRES(connection_mutex_);
  bool Send(Job& job) REQUIRES(connection_mutex_);
  bool SendQuery(Job& job, const char* sql, const std::vector<SqlValue>& values) REQUIRES(connection_mutex_);
  bool ReadResults(News& news) REQUIRES(connection_mutex_);
  void TakeResult(PGresult* result) REQUIRES(connection_mutex_);
  bool TakeFailure(PGresult* result) REQUIRES(connection_mutex_);
  void EndQuery() REQUIRES(connection_mutex_);
  void EndTransaction(News& news) REQUIRES(connection_mutex_);
  void TakeNotifications(News& news) REQUIRES(connection_mutex_);
  void Tell(News news);
  bool Wait();
  void WaitToConnect();
  void CallWhatIsDue();
  void GiveUpLate();
  void FailAll(const Error& error);
  std::string LastError() const REQUIRES(connection_mutex_);

  const PostgresLibrary& library_;
  const Options options_;
  const UniqueFd wake_;  // an eventfd

  Mutex helpers_mutex_;
  std::deque<Helper> helpers_ GUARDED_BY(helpers_mutex_);  // pointers to them stay valid

  // Lock order: connection_mutex_, mutex_.
  Mutex connection_mutex_;
  PGconn* connection_ GUARDED_BY(connection_mutex_) = nullptr;
  std::deque<Transaction> under_way_ GUARDED_BY(connection_mutex_);
  std::unordered_map<std::string, Known> known_ GUARDED_BY(connection_mutex_);  // by the statement's text
  int not_prepared_ GUARDED_BY(connection_mutex_) = 0;  // how often a prepared statement was missing
  bool must_flush_ GUARDED_BY(connection_mutex_) = false;
  bool sleeps_ GUARDED_BY(connection_mutex_) = false;  // the thread waits until it is woken
  bool is_lost_ GUARDED_BY(connection_mutex_) = false;

  mutable Mutex mutex_;
  std::deque<Job> waiting_ GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, std::function<void()>> later_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  Clock::time_point stop_until_ GUARDED_BY(mutex_){};  // until then a lost connection is waited for
  bool closing_ GUARDED_BY(mutex_) = false;
  bool is_connected_ GUARDED_BY(mutex_) = false;

  // Used by the thread only.
  bool was_reported_ = false, was_quiet_ = false;
  std::chrono::milliseconds pause_{0};
  Clock::time_point look_again_{};
  std::thread thread_;  // last: it uses all of the above
};

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
