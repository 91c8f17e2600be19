#include "postgres/database.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <future>

#include "base/logging.h"
#include "base/system_error.h"
#include "base/try.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kConnectLimit{5}, kPatience{5}, kPatienceWhenStopping{1};
constexpr milliseconds kFirstPause{50}, kLongestPause{2000}, kLookEvery{500};
constexpr std::size_t kMostUnderWay = 256;

Error Stopped() {
  return Error{
      .code = ErrorCode::kUnavailable, .reason = "stopping", .message = "the server is stopping", .retryable = true};
}

Error NoConnection(std::string detail) {
  return Error{.code = ErrorCode::kUnavailable,
               .reason = "database_unavailable",
               .message = "the database cannot be reached",
               .detail = std::move(detail),
               .retryable = true};
}

Error FailureOf(std::string_view state, const char* message) {
  const std::string detail = std::string(state) + ": " + (message ? message : "");
  if (state.starts_with("53")) {  // insufficient resources
    return Error{.code = ErrorCode::kStorageFull,
                 .reason = std::string(DefaultReason(ErrorCode::kStorageFull)),
                 .message = "the database has no room left",
                 .detail = detail};
  }
  return MakeError(ErrorCode::kIo, "the database has refused a statement", detail);
}

// The server goes, or is a standby now: somebody else is the database in a moment.
bool EndsConnection(std::string_view state) {
  return state.empty() || state.starts_with("08") || state.starts_with("57P") || state == "25006";
}
// Others were in the way, and nothing of it was done.
bool IsForRepetition(std::string_view state) { return state == "40001" || state == "40P01"; }

void Ignore(void*, const char*) {}

std::string_view Trimmed(std::string_view text) {
  const auto end = text.find_last_not_of(" \n");
  return text.substr(0, end == text.npos ? 0 : end + 1);
}

}  // namespace

bool Rows::is_null(std::size_t row, int column) const {
  return library_->is_null(result_.get(), static_cast<int>(row), column) != 0;
}

std::string_view Rows::text(std::size_t row, int column) const {
  const int at = static_cast<int>(row);
  return {library_->value(result_.get(), at, column),
          static_cast<std::size_t>(library_->length(result_.get(), at, column))};
}

// Big-endian, as the wire has it.
std::int64_t Rows::number(std::size_t row, int column) const {
  const std::string_view bytes = text(row, column);
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  if (bytes.size() == sizeof(std::int32_t)) return static_cast<std::int32_t>(static_cast<std::uint32_t>(number));
  return static_cast<std::int64_t>(number);
}

std::string SqlTextArray(const std::vector<std::string>& list) {
  std::string array = "{";
  for (const std::string& text : list) {
    array += array.size() > 1 ? ",\"" : "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  }
  return array + "}";
}

Result<std::unique_ptr<Database>> Database::Open(Options options) {
  const auto library = PostgresLibrary::Load();
  if (!library) return Fail(library.error());
  char* problem = nullptr;
  PQconninfoOption* const parsed = (*library)->parse_url(options.url.c_str(), &problem);
  if (parsed == nullptr) {
    Error error = MakeError(ErrorCode::kInvalidArgument,
                            "the database's URL cannot be used: " + std::string(Trimmed(problem ? problem : "")));
    (*library)->free_memory(problem);
    return Fail(std::move(error));
  }
  (*library)->free_options(parsed);
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Fail(ErrorCode::kInternal, "no event descriptor is left");
  return std::unique_ptr<Database>(new Database(**library, std::move(options), std::move(wake)));
}

Database::Database(const PostgresLibrary& library, Options options, UniqueFd wake)
    : library_(library), options_(std::move(options)), wake_(std::move(wake)), thread_([this] { Work(); }) {}

Database::~Database() {
  {
    const MutexLock lock(mutex_);
    stopping_ = closing_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Database::BeginStop() {
  {
    const MutexLock lock(helpers_mutex_);
    for (Helper& each : helpers_) each.database->BeginStop();
  }
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    stop_until_ = Clock::now() + kPatienceWhenStopping;
  }
  ::eventfd_write(wake_.get(), 1);
}

bool Database::is_connected() const {
  const MutexLock lock(mutex_);
  return is_connected_;
}

void Database::Submit(Statement statement, Done done) {
  bool is_first;
  {
    const MutexLock lock(mutex_);
    is_first = waiting_.empty();
    waiting_.push_back({.statement = std::move(statement), .done = std::move(done), .until = Clock::now() + kPatience});
  }
  if (is_first) ::eventfd_write(wake_.get(), 1);
}

Result<Rows> Database::Execute(Statement statement) {
  if (options_.more_connections == 0) return ExecuteHere(std::move(statement));
  Helper* const helper = TRY(TakeHelper());
  auto rows = helper->database->ExecuteHere(std::move(statement));
  const MutexLock lock(helpers_mutex_);
  --helper->waiting;
  return rows;
}

Result<Database::Helper*> Database::TakeHelper() {
  const MutexLock lock(helpers_mutex_);
  Helper* best = nullptr;
  for (Helper& each : helpers_) {
    if (best == nullptr || each.waiting < best->waiting) best = &each;
  }
  if (best == nullptr || (best->waiting > 0 && helpers_.size() < options_.more_connections)) {
    best = &helpers_.emplace_back(Helper{TRY(Open({.url = options_.url, .greetings = options_.greetings}))});
    if (is_stopping()) best->database->BeginStop();
  }
  ++best->waiting;
  return best;
}

bool Database::is_stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

Result<Rows> Database::ExecuteHere(Statement statement) {
  // Shared: who sets the value uses it a moment longer than who has waited for that.
  const auto outcome = std::make_shared<std::promise<Result<Rows>>>();
  Submit(std::move(statement), [outcome](Result<Rows> rows) { outcome->set_value(std::move(rows)); });
  return outcome->get_future().get();
}

// --- the thread ------------------------------------------------------------------------------------------------------

void Database::Work() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (closing_) break;
    }
    if (connection_ == nullptr && !Connect()) {
      GiveUpLate();
      WaitToConnect();
      continue;
    }
    if (!SendWhatWaits() || !Wait() || !ReadResults()) Disconnect(LastError().detail);
    if (Clock::now() >= look_again_) GiveUpLate();
  }
  if (connection_ != nullptr) library_.finish(connection_);
  FailAll(Stopped());
}

bool Database::Connect() {
  // What stands before the URL holds unless that says otherwise; what stands behind it always does.
  const char* const names[] = {"tcp_user_timeout",
                               "keepalives_idle",
                               "target_session_attrs",
                               "application_name",
                               "dbname",
                               "client_encoding",
                               nullptr};
  const char* const values[] = {"10000", "10", "read-write", "reprise", options_.url.c_str(), "UTF8", nullptr};
  connection_ = library_.connect_start(names, values, /*expand_dbname=*/1);
  const auto until = Clock::now() + kConnectLimit;
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (connection_ != nullptr && library_.status(connection_) != CONNECTION_BAD) {
    if (next == PGRES_POLLING_FAILED) break;
    if (next == PGRES_POLLING_OK) return Greet();
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    if (left <= 0) break;
    pollfd fd{.fd = library_.socket(connection_),
              .events = static_cast<short>(next == PGRES_POLLING_READING ? POLLIN : POLLOUT),
              .revents = 0};
    if (::poll(&fd, 1, static_cast<int>(left)) < 0 && errno != EINTR) break;
    if (fd.revents != 0) next = library_.connect_poll(connection_);
  }
  Disconnect(LastError().detail);
  return false;
}

bool Database::Greet() {
  library_.set_notice_processor(connection_, Ignore, nullptr);
  if (library_.set_nonblocking(connection_, 1) != 0 || library_.enter_pipeline_mode(connection_) != 1) {
    return Disconnect(LastError().detail), false;
  }
  for (const std::string& greeting : options_.greetings) {
    under_way_.push_back({.statement = {.sql = greeting.c_str()},
                          .done =
                              [](const Result<Rows>& done) {
                                if (!done) LogError("the database", {{"detail", done.error().detail}});
                              },
                          .until = Clock::now() + kPatience});
    if (!Send(under_way_.back())) return Disconnect(LastError().detail), false;
  }
  if (std::exchange(was_reported_, false)) LogInfo("the database can be reached again");
  pause_ = milliseconds(0);
  {
    const MutexLock lock(mutex_);
    is_connected_ = true;
  }
  if (options_.on_connected) options_.on_connected();
  return true;
}

// What was under way goes first when there is a connection again.
void Database::Disconnect(std::string_view why) {
  if (!std::exchange(was_reported_, true)) LogWarning("the database cannot be reached", {{"detail", why}});
  if (connection_ != nullptr) library_.finish(std::exchange(connection_, nullptr));
  must_flush_ = false;
  std::erase_if(under_way_, [&](const Job& job) {
    return std::any_of(options_.greetings.begin(), options_.greetings.end(),
                       [&](const std::string& greeting) { return greeting.c_str() == job.statement.sql; });
  });
  const MutexLock lock(mutex_);
  is_connected_ = false;
  for (; !under_way_.empty(); under_way_.pop_back()) {
    if (!under_way_.back().done) continue;  // nobody waits for it
    under_way_.back().outcome.reset();
    waiting_.push_front(std::move(under_way_.back()));
  }
}

bool Database::SendWhatWaits() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (waiting_.empty() || under_way_.size() >= kMostUnderWay) break;
      under_way_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    if (!Send(under_way_.back())) return false;
  }
  const int flushed = library_.flush(connection_);
  must_flush_ = flushed == 1;
  return flushed >= 0;
}

// A statement is a transaction of its own, of which the tenant's name is the first part: it holds no longer than that,
// also where a pool gives the connection to somebody else then.
bool Database::Send(const Job& job) {
  const Statement& statement = job.statement;
  return (statement.tenant.empty() ||
          SendQuery("select set_config('reprise.tenant', $1, true)", {SqlValue(statement.tenant)})) &&
         SendQuery(statement.sql, statement.values) && library_.pipeline_sync(connection_) == 1;
}

bool Database::SendQuery(const char* sql, const std::vector<SqlValue>& values) {
  std::vector<const char*> data;
  std::vector<int> sizes, formats;
  for (const SqlValue& value : values) {
    data.push_back(value.data());
    sizes.push_back(value.size());
    formats.push_back(value.is_binary() ? 1 : 0);
  }
  const int count = static_cast<int>(data.size());
  return library_.send_query(connection_, sql, count, nullptr, data.data(), sizes.data(), formats.data(),
                             /*resultFormat=*/1) == 1;
}

bool Database::Wait() {
  pollfd fds[] = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                  {.fd = library_.socket(connection_),
                   .events = static_cast<short>(POLLIN | (must_flush_ ? POLLOUT : 0)),
                   .revents = 0}};
  // While something is under way it is looked at again: the database may have fallen silent.
  const int limit = under_way_.empty() ? -1 : static_cast<int>(kLookEvery.count());
  if (::poll(fds, std::size(fds), limit) < 0) return errno == EINTR;
  eventfd_t ignored;
  if (fds[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
  return true;
}

bool Database::ReadResults() {
  if (library_.consume_input(connection_) != 1) return false;
  TellNotifications();
  while (!under_way_.empty() && library_.is_busy(connection_) == 0) {
    if (library_.status(connection_) == CONNECTION_BAD) return false;
    PGresult* const result = library_.get_result(connection_);
    if (result == nullptr) continue;  // the end of one statement's
    const auto status = library_.result_status(result);
    if (status == PGRES_PIPELINE_SYNC) {
      library_.clear(result);
      Job job = std::move(under_way_.front());
      under_way_.pop_front();
      if (job.outcome) {
        if (job.done) job.done(*std::move(job.outcome));
      } else if (job.done) {
        const MutexLock lock(mutex_);
        waiting_.push_front(std::move(job));
      }
      continue;
    }
    if (status == PGRES_PIPELINE_ABORTED) {  // what stands before it has failed, and says why
      library_.clear(result);
      continue;
    }
    if (status != PGRES_FATAL_ERROR) {
      under_way_.front().outcome = Rows(library_, result);
      continue;
    }
    const char* const state = library_.error_field(result, PG_DIAG_SQLSTATE);
    const std::string code = state ? state : "";
    if (!IsForRepetition(code)) {
      under_way_.front().outcome = Fail(FailureOf(code, library_.error_field(result, PG_DIAG_MESSAGE_PRIMARY)));
    }
    library_.clear(result);
    if (EndsConnection(code)) return false;
  }
  return library_.status(connection_) != CONNECTION_BAD;
}

void Database::TellNotifications() {
  while (PGnotify* const told = library_.notifies(connection_)) {
    if (options_.on_notification) options_.on_notification(told->relname, told->extra);
    library_.free_memory(told);
  }
}

// One that is under way stays in its place, as its result may come, which is nobody's then.
void Database::GiveUpLate() {
  look_again_ = Clock::now() + kLookEvery;
  std::deque<Job> late;
  {
    const MutexLock lock(mutex_);
    const auto now = Clock::now();
    const auto is_late = [&](const Job& job) REQUIRES(mutex_) {
      const bool is_hopeless = stopping_ && !is_connected_ && now >= stop_until_;
      return is_hopeless || ((stopping_ || !job.statement.is_patient) && job.until <= now);
    };
    for (Job& job : under_way_) {
      if (!job.done || !is_late(job) || job.outcome) continue;
      late.push_back({.statement = {.sql = job.statement.sql}, .done = std::exchange(job.done, nullptr), .until = {}});
    }
    for (auto job = waiting_.begin(); job != waiting_.end();) {
      if (!is_late(*job)) {
        ++job;
        continue;
      }
      late.push_back(std::move(*job));
      job = waiting_.erase(job);
    }
  }
  for (Job& job : late) job.done(Fail(NoConnection("")));
}

void Database::WaitToConnect() {
  pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
  const auto until = Clock::now() + pause_;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    {
      const MutexLock lock(mutex_);
      if (left <= 0 || closing_) return;
    }
    pollfd fd{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    ::poll(&fd, 1, static_cast<int>(left));
    eventfd_t ignored;
    ::eventfd_read(wake_.get(), &ignored);
  }
}

void Database::FailAll(const Error& error) {
  std::deque<Job> all = std::exchange(under_way_, {});
  {
    const MutexLock lock(mutex_);
    for (Job& job : waiting_) all.push_back(std::move(job));
    waiting_.clear();
  }
  for (Job& job : all) {
    if (job.done) job.done(Fail(error));
  }
}

Error Database::LastError() const {
  return NoConnection(std::string(Trimmed(connection_ ? library_.error_message(connection_) : "out of memory")));
}

}  // namespace reprise
