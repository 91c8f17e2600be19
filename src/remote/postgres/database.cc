#include "remote/postgres/database.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <future>

#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kConnectLimit{5}, kPatience{5}, kPatienceWhenStopping{1};
constexpr milliseconds kFirstPause{50}, kLongestPause{2000}, kLookEvery{500};
constexpr std::size_t kMostUnderWay = 256;

Error Stopped() { return Refused(Reason::kStopping, "the server is stopping"); }

Error NoConnection(std::string detail) {
  return Refused(Reason::kDatabaseUnavailable, "the database cannot be reached", std::move(detail));
}

Error FailureOf(std::string_view state, const char* message) {
  const std::string detail = std::string(state) + ": " + (message ? message : "");
  if (state.starts_with("53")) {  // insufficient resources
    return MakeError(ErrorCode::kStorageFull, "the database has no room left", detail);
  }
  return MakeError(ErrorCode::kIo, "the database has refused a statement", detail);
}

// The server shuts down, or is a standby now; another one takes over in a moment.
bool EndsConnection(std::string_view state) {
  return state.empty() || state.starts_with("08") || state.starts_with("57P") || state == "25006";
}
// A prepared statement is missing, or exists already, because of a pooler in between.
bool IsOfPreparation(std::string_view state) { return state == "26000" || state == "42P05"; }
// Another transaction was in the way, and nothing was done.
bool IsForRepetition(std::string_view state) { return state == "40001" || state == "40P01"; }

void Ignore(void*, const char*) {}

}  // namespace

bool Rows::is_null(std::size_t row, int column) const {
  return library_->is_null(result_.get(), static_cast<int>(row), column) != 0;
}

std::string_view Rows::text(std::size_t row, int column) const {
  const int at = static_cast<int>(row);
  return {library_->value(result_.get(), at, column),
          static_cast<std::size_t>(library_->length(result_.get(), at, column))};
}

// Big-endian, as on the wire.
std::int64_t Rows::number(std::size_t row, int column) const {
  const std::string_view bytes = text(row, column);
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  if (bytes.size() == sizeof(std::int32_t)) return static_cast<std::int32_t>(static_cast<std::uint32_t>(number));
  return static_cast<std::int64_t>(number);
}

namespace {

void AppendNumber(std::string& out, std::uint32_t number) {
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(number >> shift & 0xff);
}

// A list of one dimension, in the form of the wire.
template <typename List, typename Append>
std::string BinaryArray(std::uint32_t element_type, const List& list, const Append& append) {
  std::string array;
  AppendNumber(array, list.empty() ? 0 : 1);
  AppendNumber(array, 0);  // no nulls
  AppendNumber(array, element_type);
  if (list.empty()) return array;
  AppendNumber(array, static_cast<std::uint32_t>(list.size()));
  AppendNumber(array, 1);  // the index of the first one
  for (const auto& each : list) append(array, each);
  return array;
}

void AppendBytes(std::string& array, const std::string& bytes) {
  AppendNumber(array, static_cast<std::uint32_t>(bytes.size()));
  array += bytes;
}

constexpr std::uint32_t kByteaType = 17, kIntType = 23, kTextType = 25, kUuidType = 2950;

}  // namespace

SqlValue SqlValue::Texts(const std::vector<std::string>& list) {
  return Bytes(BinaryArray(kTextType, list, AppendBytes));
}

SqlValue SqlValue::ByteStrings(const std::vector<std::string>& list) {
  return Bytes(BinaryArray(kByteaType, list, AppendBytes));
}

SqlValue SqlValue::Ints(const std::vector<std::int64_t>& list) {
  return Bytes(BinaryArray(kIntType, list, [](std::string& array, std::int64_t number) {
    AppendNumber(array, sizeof(std::uint32_t));
    AppendNumber(array, static_cast<std::uint32_t>(number));
  }));
}

SqlValue SqlValue::Uuids(const std::vector<std::string>& list) {
  return Bytes(BinaryArray(kUuidType, list, [](std::string& array, const std::string& hex) {
    std::string bytes;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
      bytes += static_cast<char>(std::strtoul(hex.substr(at, 2).c_str(), nullptr, 16));
    }
    AppendBytes(array, bytes);
  }));
}

namespace {

// libpq's own message quotes parts of the URL, and so perhaps the password.
std::string_view WhyNoUrl(std::string_view url, std::string_view problem) {
  const auto tells_of = [&](std::string_view word) { return problem.find(word) != problem.npos; };
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://")) {
    return "it begins neither with postgresql:// nor with postgres://";
  }
  if (tells_of("percent-encoded")) return "two hexadecimal digits, which are not 00, must follow each %";
  if (tells_of("query parameter")) return "what follows ? must be name=value, with names that libpq knows";
  if (tells_of("IPv6") || tells_of("]")) return "an IPv6 address stands between [ and ]";
  return "it is not of the form postgresql://user:password@host:port/database";
}

// A password without an @ after it is read as the port, which messages show.
bool HasOtherPort(const PQconninfoOption* options) {
  for (; options->keyword != nullptr; ++options) {
    if (std::string_view(options->keyword) != "port" || options->val == nullptr) continue;
    return std::string_view(options->val).find_first_not_of("0123456789,") != std::string_view::npos;
  }
  return false;
}

tl::unexpected<Error> NoUrl(std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, "the database's URL cannot be used: " + std::string(why));
}

}  // namespace

Result<void> Database::CheckUrl(const std::string& url) {
  const PostgresLibrary& library = *TRY(PostgresLibrary::Load());
  char* problem = nullptr;
  PQconninfoOption* const parsed = library.parse_url(url.c_str(), &problem);
  if (parsed == nullptr) {
    const std::string_view why = WhyNoUrl(url, problem ? problem : "");
    library.free_memory(problem);
    return NoUrl(why);
  }
  const bool has_other_port = HasOtherPort(parsed);
  library.free_options(parsed);
  if (has_other_port) return NoUrl("the port is a number");
  return {};
}

Result<std::unique_ptr<Database>> Database::Open(Options options) {
  TRY(CheckUrl(options.url));
  const auto library = TRY(PostgresLibrary::Load());
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Fail(ErrorCode::kInternal, "no event descriptor is left");
  return std::unique_ptr<Database>(new Database(*library, std::move(options), std::move(wake)));
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
    const MutexLock lock(mutex_);
    stopping_ = true;
    stop_until_ = Clock::now() + kPatienceWhenStopping;
  }
  ::eventfd_write(wake_.get(), 1);
  // Last: one that is opened meanwhile sees that this one stops.
  const MutexLock lock(helpers_mutex_);
  for (Helper& each : helpers_) each.database->BeginStop();
}

bool Database::is_connected() const {
  const MutexLock lock(mutex_);
  return is_connected_;
}

void Database::Submit(Statement statement, Done done) {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back({.statement = std::move(statement), .done = std::move(done), .until = Clock::now() + kPatience});
  }
  SendNow();
}

// Sending here saves a switch to the database's thread. If another thread has the connection now, it may not see this
// statement, so the database's thread has to look once more.
void Database::SendNow() {
  if (connection_mutex_.try_lock()) {
    const MutexLock lock(connection_mutex_, std::adopt_lock);
    if (connection_ != nullptr && !is_lost_) is_lost_ = !SendWhatWaits();
    const bool needs_thread = connection_ == nullptr || is_lost_ || must_flush_ || sleeps_;
    if (!needs_thread) return;
  }
  ::eventfd_write(wake_.get(), 1);
}

Result<Rows> Database::Execute(Statement statement) {
  if (options_.more_connections == 0) return ExecuteInOrder(std::move(statement));
  Helper* const helper = TRY(TakeHelper());
  auto rows = helper->database->ExecuteInOrder(std::move(statement));
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

void Database::CallLater(std::chrono::milliseconds pause, std::function<void()> call) {
  {
    const MutexLock lock(mutex_);
    later_.emplace(Clock::now() + pause, std::move(call));
  }
  ::eventfd_write(wake_.get(), 1);
}

bool Database::is_stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

Result<Rows> Database::ExecuteInOrder(Statement statement) {
  // Shared, because the thread that sets the value uses it a moment longer than the one that waits for it.
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
    bool is_there;
    {
      const MutexLock lock(connection_mutex_);
      is_there = connection_ != nullptr;
    }
    if (!is_there && !Connect()) {
      GiveUpLate();
      WaitToConnect();
      continue;
    }
    News news;
    std::string problem;
    is_there = Wait();
    {
      const MutexLock lock(connection_mutex_);
      is_there = is_there && !is_lost_ && ReadResults(news) && SendWhatWaits();
      if (!is_there) problem = LastError();
    }
    if (!is_there) Disconnect(problem);
    Tell(std::move(news));
    CallWhatIsDue();
    if (Clock::now() >= look_again_) GiveUpLate();
  }
  {
    const MutexLock lock(connection_mutex_);
    if (connection_ != nullptr) library_.finish(std::exchange(connection_, nullptr));
  }
  FailAll(Stopped());
}

bool Database::Connect() {
  // Values before the URL are defaults that it may override; values after it always hold.
  const char* const names[] = {"tcp_user_timeout",
                               "keepalives_idle",
                               "target_session_attrs",
                               "application_name",
                               "dbname",
                               "client_encoding",
                               nullptr};
  const char* const values[] = {"10000", "10", "read-write", "reprise", options_.url.c_str(), "UTF8", nullptr};
  PGconn* const made = library_.connect_start(names, values, /*expand_dbname=*/1);
  const auto until = Clock::now() + kConnectLimit;
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (made != nullptr && library_.status(made) != CONNECTION_BAD) {
    if (next == PGRES_POLLING_FAILED || next == PGRES_POLLING_OK) break;
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    if (left <= 0) break;
    pollfd fd{.fd = library_.socket(made),
              .events = static_cast<short>(next == PGRES_POLLING_READING ? POLLIN : POLLOUT),
              .revents = 0};
    if (::poll(&fd, 1, static_cast<int>(left)) < 0 && errno != EINTR) break;
    if (fd.revents != 0) next = library_.connect_poll(made);
  }
  bool is_made = false;
  std::string problem;
  {
    const MutexLock lock(connection_mutex_);
    connection_ = made;
    is_made = next == PGRES_POLLING_OK && Greet();
    if (!is_made) problem = LastError();
  }
  if (!is_made) return Disconnect(problem), false;
  if (std::exchange(was_reported_, false)) LogInfo("the database can be reached again");
  pause_ = milliseconds(0);
  {
    const MutexLock lock(mutex_);
    is_connected_ = true;
  }
  if (options_.on_connected) options_.on_connected();
  SendNow();
  return true;
}

bool Database::Greet() {
  library_.set_notice_processor(connection_, Ignore, nullptr);
  if (library_.set_nonblocking(connection_, 1) != 0 || library_.enter_pipeline_mode(connection_) != 1) return false;
  for (const std::string& greeting : options_.greetings) {
    under_way_.emplace_back();
    under_way_.back().jobs.push_back({.statement = {.sql = greeting.c_str()},
                                      .done =
                                          [](const Result<Rows>& done) {
                                            if (!done) LogError("the database", {{"detail", done.error().detail}});
                                          },
                                      .until = Clock::now() + kPatience});
    if (!Send(under_way_.back().jobs.back()) || library_.pipeline_sync(connection_) != 1) return false;
  }
  return true;
}

// Statements that were under way go first on the next connection.
void Database::Disconnect(std::string_view why) {
  if (!std::exchange(was_reported_, true)) LogWarning("the database cannot be reached", {{"detail", why}});
  const MutexLock lock(connection_mutex_);
  if (connection_ != nullptr) library_.finish(std::exchange(connection_, nullptr));
  must_flush_ = is_lost_ = false;
  known_.clear();
  const auto is_greeting = [&](const Job& job) {
    return std::ranges::any_of(options_.greetings,
                               [&](const std::string& greeting) { return greeting.c_str() == job.statement.sql; });
  };
  const MutexLock waiting_lock(mutex_);
  is_connected_ = false;
  for (; !under_way_.empty(); under_way_.pop_back()) {
    auto& jobs = under_way_.back().jobs;
    for (; !jobs.empty(); jobs.pop_back()) {
      if (!jobs.back().done || is_greeting(jobs.back())) continue;  // no caller waits for it
      jobs.back().outcome.reset();
      waiting_.push_front(std::move(jobs.back()));
    }
  }
}

bool Database::SendWhatWaits() {
  constexpr std::size_t kMostTogether = 64;
  bool is_open = false, is_shared = false, has_sent = false;
  for (;;) {
    std::optional<Job> job;
    bool joins = false;
    {
      const MutexLock lock(mutex_);
      if (waiting_.empty() || under_way_.size() >= kMostUnderWay) break;
      const bool shares = waiting_.front().statement.may_share;
      joins = shares && is_shared && under_way_.back().jobs.size() < kMostTogether;
      if (shares && !joins && !under_way_.empty()) break;  // it waits for those under way, and shares with later ones
      is_shared = shares;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const bool is_ended = !is_open || joins || library_.pipeline_sync(connection_) == 1;
    if (!joins) under_way_.emplace_back();
    under_way_.back().jobs.push_back(*std::move(job));
    is_open = has_sent = true;
    if (!is_ended || !Send(under_way_.back().jobs.back())) return false;
  }
  if (is_open && library_.pipeline_sync(connection_) != 1) return false;
  if (!has_sent && !must_flush_) return true;
  const int flushed = library_.flush(connection_);
  must_flush_ = flushed == 1;
  return flushed >= 0;
}

// The tenant's name is set for the transaction only, so that it does not remain when a pooler then gives the connection
// to another client.
bool Database::Send(Job& job) {
  job.queries = job.ended = 0;
  job.prepares = -1;
  job.prepared = job.known = nullptr;
  const auto& jobs = under_way_.back().jobs;
  const std::string& before = jobs.size() > 1 ? jobs[jobs.size() - 2].statement.tenant : std::string();
  const Statement& statement = job.statement;
  const bool is_named = statement.tenant == before ||
                        SendQuery(job, "select set_config('reprise.tenant', $1, true)", {SqlValue(statement.tenant)});
  return is_named && SendQuery(job, statement.sql, statement.values);
}

// A statement is prepared at its second use, under a name made from its text. So if a pooler gives us the connection of
// another client, the name cannot stand for another statement there.
bool Database::SendQuery(Job& job, const char* sql, const std::vector<SqlValue>& values) {
  std::vector<const char*> data;
  std::vector<int> sizes, formats;
  for (const SqlValue& value : values) {
    data.push_back(value.data());
    sizes.push_back(value.size());
    formats.push_back(value.is_binary() ? 1 : 0);
  }
  const int count = static_cast<int>(data.size());
  constexpr int kBinary = 1, kMostMisses = 3;
  const auto [place, is_new] = known_.try_emplace(sql);
  Known& known = place->second;
  job.known = &known;
  if (!is_new && known.state == Known::State::kSeen && job.prepares < 0 && not_prepared_ < kMostMisses) {
    known.name = "reprise_" + std::to_string(std::hash<std::string_view>()(sql));
    if (library_.send_prepare(connection_, known.name.c_str(), sql, 0, nullptr) != 1) return false;
    known.state = Known::State::kPreparing;
    job.prepares = job.queries++;
    job.prepared = &known;
  }
  ++job.queries;
  if (known.state == Known::State::kPrepared || job.prepared == &known) {
    return library_.send_prepared(connection_, known.name.c_str(), count, data.data(), sizes.data(), formats.data(),
                                  kBinary) == 1;
  }
  return library_.send_query(connection_, sql, count, nullptr, data.data(), sizes.data(), formats.data(), kBinary) == 1;
}

bool Database::Wait() {
  int limit;
  pollfd fds[2] = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}, {}};
  {
    const MutexLock lock(connection_mutex_);
    // While statements are under way, or were a moment ago, the thread wakes up at times: the database may have fallen
    // silent.
    sleeps_ = under_way_.empty() && was_quiet_;
    limit = sleeps_ ? -1 : static_cast<int>(kLookEvery.count());
    fds[1] = {.fd = library_.socket(connection_),
              .events = static_cast<short>(POLLIN | (must_flush_ ? POLLOUT : 0)),
              .revents = 0};
  }
  {
    const MutexLock lock(mutex_);
    if (!later_.empty()) {
      const auto left = std::chrono::ceil<milliseconds>(later_.begin()->first - Clock::now()).count();
      limit = static_cast<int>(std::clamp<std::int64_t>(left, 0, limit < 0 ? kLookEvery.count() : limit));
    }
  }
  const int ready = ::poll(fds, std::size(fds), limit);
  if (ready < 0) return errno == EINTR;
  was_quiet_ = ready == 0;
  eventfd_t ignored;
  if (fds[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
  return true;
}

bool Database::ReadResults(News& news) {
  sleeps_ = false;
  if (library_.consume_input(connection_) != 1) return false;
  TakeNotifications(news);
  while (!under_way_.empty() && library_.is_busy(connection_) == 0) {
    if (library_.status(connection_) == CONNECTION_BAD) return false;
    PGresult* const result = library_.get_result(connection_);
    if (result == nullptr) {
      EndQuery();
      continue;
    }
    const auto status = library_.result_status(result);
    if (status == PGRES_FATAL_ERROR) {
      if (!TakeFailure(result)) return false;
    } else if (status == PGRES_PIPELINE_SYNC) {
      library_.clear(result);
      EndTransaction(news);
    } else if (status == PGRES_PIPELINE_ABORTED) {  // an earlier query has failed, and has the reason
      library_.clear(result);
    } else {
      TakeResult(result);
    }
  }
  return library_.status(connection_) != CONNECTION_BAD;
}

void Database::TakeResult(PGresult* result) {
  Transaction& transaction = under_way_.front();
  if (transaction.reading == transaction.jobs.size()) return library_.clear(result);
  Job& job = transaction.jobs[transaction.reading];
  if (job.ended == job.prepares) {
    job.prepared->state = Known::State::kPrepared;
    return library_.clear(result);
  }
  job.outcome = Rows(library_, result);  // of its last query
}

// False if the connection is lost.
bool Database::TakeFailure(PGresult* result) {
  const char* const state = library_.error_field(result, PG_DIAG_SQLSTATE);
  const std::string code = state ? state : "";
  Error error = FailureOf(code, library_.error_field(result, PG_DIAG_MESSAGE_PRIMARY));
  library_.clear(result);
  if (EndsConnection(code)) return false;
  Transaction& transaction = under_way_.front();
  transaction.has_failed = true;
  transaction.reading = std::min(transaction.reading, transaction.jobs.size() - 1);
  Job& job = transaction.jobs[transaction.reading];
  job.outcome.reset();
  if (IsOfPreparation(code)) {
    ++not_prepared_;
    // It may also be the query with the tenant's name, which is not told apart here.
    Known& known = *(job.ended == job.prepares ? job.prepared : job.known);
    known.state = known.state == Known::State::kPreparing ? Known::State::kPrepared : Known::State::kSeen;
  } else if (IsForRepetition(code)) {
    job.statement.may_share = false;
  } else {
    job.outcome = Fail(std::move(error));
  }
  return true;
}

void Database::EndQuery() {
  Transaction& transaction = under_way_.front();
  if (transaction.reading == transaction.jobs.size()) return;
  Job& job = transaction.jobs[transaction.reading];
  if (++job.ended == job.queries) ++transaction.reading;
}

// If one job has failed, none of them took effect, and the others are repeated.
void Database::EndTransaction(News& news) {
  Transaction transaction = std::move(under_way_.front());
  under_way_.pop_front();
  for (const Job& job : transaction.jobs) {
    // Statements that were to be prepared after the failure were not.
    if (transaction.has_failed && job.prepared && job.prepared->state == Known::State::kPreparing) {
      job.prepared->state = Known::State::kSeen;
    }
  }
  const MutexLock lock(mutex_);
  for (auto job = transaction.jobs.rbegin(); job != transaction.jobs.rend(); ++job) {
    if (!job->done) continue;
    const bool is_told = job->outcome && (!transaction.has_failed || !*job->outcome);
    if (is_told) continue;
    job->outcome.reset();
    waiting_.push_front(std::move(*job));
    job->done = nullptr;
  }
  for (Job& job : transaction.jobs) {
    if (job.done) news.outcomes.emplace_back(std::move(job.done), *std::move(job.outcome));
  }
}

void Database::TakeNotifications(News& news) {
  while (PGnotify* const told = library_.notifies(connection_)) {
    news.notifications.emplace_back(told->relname, told->extra);
    library_.free_memory(told);
  }
}

void Database::Tell(News news) {
  for (const auto& each : news.notifications) {
    Guarded("a listener for notifications", [&] {
      if (options_.on_notification) options_.on_notification(each.first, each.second);
    });
  }
  for (auto& each : news.outcomes) {
    Guarded("a caller of the database", [&] {
      auto& [done, outcome] = each;
      done(std::move(outcome));
    });
  }
}

// A statement under way stays in its place, because its result may still come, and is dropped then.
void Database::GiveUpLate() {
  look_again_ = Clock::now() + kLookEvery;
  std::deque<Job> late;
  {
    const MutexLock lock(connection_mutex_);
    const MutexLock waiting_lock(mutex_);
    const auto now = Clock::now();
    const auto is_late = [&](const Job& job) REQUIRES(mutex_) {
      const bool is_hopeless = stopping_ && !is_connected_ && now >= stop_until_;
      return is_hopeless || ((stopping_ || !job.statement.is_patient) && job.until <= now);
    };
    for (Transaction& transaction : under_way_) {
      for (Job& job : transaction.jobs) {
        if (!job.done || !is_late(job) || job.outcome) continue;
        late.push_back(
            {.statement = {.sql = job.statement.sql}, .done = std::exchange(job.done, nullptr), .until = {}});
      }
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
    CallWhatIsDue();
  }
}

void Database::CallWhatIsDue() {
  std::vector<std::function<void()>> due;
  {
    const MutexLock lock(mutex_);
    const auto end = later_.upper_bound(Clock::now());
    for (auto each = later_.begin(); each != end; ++each) due.push_back(std::move(each->second));
    later_.erase(later_.begin(), end);
  }
  for (const auto& call : due) Guarded("a timer", call);
}

void Database::FailAll(const Error& error) {
  std::deque<Transaction> under_way;
  {
    const MutexLock lock(connection_mutex_);
    under_way.swap(under_way_);
  }
  std::deque<Job> waiting;
  {
    const MutexLock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (Transaction& transaction : under_way) {
    for (Job& job : transaction.jobs) {
      if (job.done) job.done(Fail(error));
    }
  }
  for (Job& job : waiting) job.done(Fail(error));
}

std::string Database::LastError() const {
  return std::string(Trimmed(connection_ ? library_.error_message(connection_) : "out of memory"));
}

}  // namespace reprise
