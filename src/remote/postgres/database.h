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

// What one statement gave. Values are read as the type that the statement gives them: cast there what is not text,
// bytea, int or bigint.
class Rows {
 public:
  Rows() = default;
  Rows(const PostgresLibrary& library, PGresult* result)
      : library_(&library), result_(result, [&library](PGresult* old) { library.clear(old); }) {}

  std::size_t size() const { return result_ ? static_cast<std::size_t>(library_->rows(result_.get())) : 0; }
  bool empty() const { return size() == 0; }
  bool is_null(std::size_t row, int column) const;
  // Text or bytea as it is; there as long as this or a copy of it is.
  std::string_view text(std::size_t row, int column) const;
  // Of an int or a bigint.
  std::int64_t number(std::size_t row, int column) const;
  bool truth(std::size_t row, int column) const { return text(row, column) == std::string_view("\1", 1); }

 private:
  const PostgresLibrary* library_ = nullptr;
  std::shared_ptr<PGresult> result_;
};

// A value for a statement's $1, $2 and so on. The statement casts what is not text.
class SqlValue {
 public:
  SqlValue(std::string text) : text_(std::move(text)) {}            // NOLINT: a value is what it is made of
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
  const char* sql;  // must live on: a literal
  std::vector<SqlValue> values{};
  // Whether it waits for a connection as long as it takes, or gives up after some seconds (kUnavailable, retryable).
  bool is_patient = false;
  // Whether it may be one transaction with others that say so: those that wait together are committed together. If one
  // of them fails, the others are tried without it. It must not wait for a lock that somebody holds for long, and must
  // not ask for another way to commit than the others on the same connection.
  bool may_share = false;
  std::string tenant{};  // whose rows it may touch (TenantDatabase); empty: the single user's
};

// One connection to PostgreSQL in pipeline mode, made again when it is lost. Whoever submits a statement sends it, if
// nobody has the connection just then; a thread reads results and does all else. Statements run one after the other;
// those that may share a transaction and come while one is under way go together in the next one. What is executed
// again and again is prepared, unless a pooler lies between that does not take it. A statement whose outcome is not
// known, because the connection was lost, is sent again: each must do the same then. Thread-safe.
class Database {
 public:
  struct Options {
    std::string url;  // postgresql://..., or what libpq takes instead
    // What each connection begins with.
    std::vector<std::string> greetings{};
    // Beside the one that Submit uses: for those who wait for a statement (Execute). They are made when they are needed
    // at once, so that writers do not wait for each other's commits. 0: Execute uses the one connection too.
    std::size_t more_connections = 0;
    // Told of a notification, on the database's thread; must be quick.
    std::function<void(std::string_view channel, std::string_view payload)> on_notification{};
    // Told that there is a connection again: notifications may have been lost. Likewise.
    std::function<void()> on_connected{};
  };
  // kInvalidArgument: no database can be named so. The message says what is wrong, and nothing of the URL, which may
  // hold a password. kUnavailable: there is no libpq.
  static Result<void> CheckUrl(const std::string& url);
  // The failures of CheckUrl. Does not connect yet.
  static Result<std::unique_ptr<Database>> Open(Options options);
  // What is under way fails with kUnavailable (reason "stopping").
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // `done` is called once, on the database's thread, in the order of the calls (but for what had to be tried again); it
  // must be quick and may submit. kIo, kStorageFull, kUnavailable; the SQLSTATE is in `detail`.
  using Done = std::function<void(Result<Rows>)>;
  void Submit(Statement statement, Done done);
  // The same, and waits for it. Perhaps over another connection: what was submitted before may still be under way.
  // REQUIRES: not on the database's thread.
  Result<Rows> Execute(Statement statement);
  // The same over the connection that Submit uses, behind what was submitted.
  Result<Rows> ExecuteInOrder(Statement statement);
  // Calls it later, on the database's thread; it must be quick. Not any more when the object is destroyed.
  void CallLater(std::chrono::milliseconds pause, std::function<void()> call);
  // From now on nothing is waited for: patient statements give up like others.
  void BeginStop();
  bool is_connected() const;
  bool is_stopping() const;

 private:
  using Clock = std::chrono::steady_clock;
  // A statement as this connection knows it.
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
    int queries = 0, ended = 0;  // that it was sent as, and those whose results are read
    int prepares = -1;           // which of them prepares something
    Known* prepared = nullptr;   // and what
    Known* known = nullptr;      // the statement itself
  };
  // What is committed together.
  struct Transaction {
    std::vector<Job> jobs{};
    std::size_t reading = 0;  // the job whose results come next
    bool has_failed = false;
  };
  // What there is to tell when the connection is not held any more.
  struct News {
    std::vector<std::pair<Done, Result<Rows>>> outcomes{};
    std::vector<std::pair<std::string, std::string>> notifications{};
  };

  Database(const PostgresLibrary& library, Options options, UniqueFd wake);

  // Another connection. The one that nobody waits for, or else the fewest do.
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
  // All false if the connection is lost.
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
  std::deque<Helper> helpers_ GUARDED_BY(helpers_mutex_);  // their places stay

  // Lock order: connection_mutex_, mutex_.
  Mutex connection_mutex_;
  PGconn* connection_ GUARDED_BY(connection_mutex_) = nullptr;
  std::deque<Transaction> under_way_ GUARDED_BY(connection_mutex_);
  std::unordered_map<std::string, Known> known_ GUARDED_BY(connection_mutex_);  // by the statement's text
  int not_prepared_ GUARDED_BY(connection_mutex_) = 0;  // how often something prepared was not there
  bool must_flush_ GUARDED_BY(connection_mutex_) = false;
  bool sleeps_ GUARDED_BY(connection_mutex_) = false;  // the thread looks at nothing until it is woken
  bool is_lost_ GUARDED_BY(connection_mutex_) = false;

  mutable Mutex mutex_;
  std::deque<Job> waiting_ GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, std::function<void()>> later_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  Clock::time_point stop_until_ GUARDED_BY(mutex_){};  // that long a lost connection is waited for
  bool closing_ GUARDED_BY(mutex_) = false;
  bool is_connected_ GUARDED_BY(mutex_) = false;

  // Used by the thread only.
  bool was_reported_ = false, was_quiet_ = false;
  std::chrono::milliseconds pause_{0};
  Clock::time_point look_again_{};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace reprise
