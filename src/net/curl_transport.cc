#include "net/curl_transport.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr long kMaxKeptConnections = 256;
constexpr std::size_t kMaxSpareHandles = 64;
constexpr std::chrono::microseconds kLongestBatch{500};
constexpr std::uint64_t kWakeEvent = std::numeric_limits<std::uint64_t>::max();

enum PoolIndex : std::uint64_t { kAnyAddress, kPublicAddresses };

Error OutOfResources(int error) {
  Error failed = SystemError(error, "transport", "no connection can be made");
  failed.code = ErrorCode::kUnavailable;
  return failed;
}

tl::unexpected<Error> Cancelled() { return Fail(ErrorCode::kCancelled, "the request was cancelled"); }

// Signals belong to the main thread. SIGPIPE is blocked too, because OpenSSL writes to sockets without MSG_NOSIGNAL.
void BlockSignals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Result<std::unique_ptr<CurlLoop>> CurlLoop::Start() {
  auto curl = TRY(CurlLibrary::Load());
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll || !wake) return Fail(OutOfResources(errno));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeEvent}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) return Fail(OutOfResources(errno));
  std::unique_ptr<CurlLoop> loop(new CurlLoop(*curl, std::move(epoll), std::move(wake)));
  if (loop->OpenPool(kAnyAddress) == nullptr || loop->OpenPool(kPublicAddresses) == nullptr) {
    return Fail(OutOfResources(errno));
  }
  try {
    loop->thread_ = std::jthread([loop = loop.get()](std::stop_token stop) { loop->Run(stop); });
  } catch (const std::system_error& error) {
    return Fail(OutOfResources(error.code().value()));
  }
  return loop;
}

// Null if there is no memory.
CurlLoop::Pool* CurlLoop::OpenPool(std::uint64_t index) {
  CURLM* const multi = curl_.multi_init();
  if (multi == nullptr) return nullptr;
  Pool& pool = pools_[index];
  pool.loop = this;
  pool.index = index;
  pool.multi = multi;
  curl_.multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &OnSocket);
  curl_.multi_setopt(multi, CURLMOPT_SOCKETDATA, &pool);
  curl_.multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &OnTimer);
  curl_.multi_setopt(multi, CURLMOPT_TIMERDATA, &pool);
  curl_.multi_setopt(multi, CURLMOPT_MAXCONNECTS, kMaxKeptConnections);
  return &pool;
}

void CurlLoop::CloseSpentPools() {
  for (const std::uint64_t index : std::exchange(spent_pools_, {})) {
    curl_.multi_cleanup(pools_.at(index).multi);
    pools_.erase(index);
  }
}

CurlLoop::~CurlLoop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  for (CURL* easy : spare_handles_) curl_.easy_cleanup(easy);
  for (auto& [index, pool] : pools_) curl_.multi_cleanup(pool.multi);
}

void CurlLoop::Post(Command command) {
  bool first;
  {
    const MutexLock lock(mutex_);
    first = commands_.empty();
    commands_.push_back(std::move(command));
  }
  if (first) Wake();  // else an earlier Wake is still pending
}

void CurlLoop::Wake() {
  const std::uint64_t one = 1;
  // Fails only if the counter is 2^64 - 2.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void CurlLoop::Run(std::stop_token stop) {
  BlockSignals();
  const std::stop_callback wake_to_stop(stop, [this] { Wake(); });
  std::array<epoll_event, 1024> events;
  while (!stop.stop_requested()) {
    // Deadlines are judged by the time before this poll, so that after a suspended process resumes, the bytes that
    // arrived meanwhile are read first and count.
    const SteadyTime looked_at = std::chrono::steady_clock::now();
    const int timeout = touched_.empty() ? EpollTimeout() : 0;
    const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    now_ = std::chrono::steady_clock::now();
    if (touched_.empty()) batch_began_ = now_;
    if (ready <= 0 || now_ - batch_began_ >= kLongestBatch) EndBatches();
    bool woken = false;
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == kWakeEvent) {
        woken = true;
        continue;
      }
      const auto pool = pools_.find(event.data.u64 >> 32);
      if (pool == pools_.end()) continue;
      if (pool->second.web_socket != nullptr) {
        Converse(*pool->second.web_socket);
        continue;
      }
      const int mask = (event.events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP) ? CURL_CSELECT_IN : 0) |
                       (event.events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                       (event.events & EPOLLERR ? CURL_CSELECT_ERR : 0);
      Act(pool->second, static_cast<curl_socket_t>(event.data.u64 & 0xffffffffu), mask);
    }
    if (woken) RunCommands();
    FireTimers();
    const bool all_seen = ready < static_cast<int>(events.size());
    if (all_seen) CheckDeadlines(looked_at);
    CloseSpentPools();
  }
  RunCommands();
  while (!transfers_.empty()) {
    CurlTransfer& transfer = *transfers_.begin()->second;
    End(transfer, Fail(ErrorCode::kCancelled, "the transport was closed"));
  }
}

// Milliseconds until the next deadline, rounded up; -1 if there is none.
int CurlLoop::EpollTimeout() const {
  std::optional<SteadyTime> due;
  for (const auto& [index, pool] : pools_) {
    if (pool.timer && (!due || *pool.timer < *due)) due = pool.timer;
  }
  if (!deadlines_.empty() && (!due || deadlines_.begin()->first < *due)) due = deadlines_.begin()->first;
  if (!due) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*due - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 60'000));
}

void CurlLoop::RunCommands() {
  std::uint64_t count = 0;
  // Reset before the commands are taken, so that later ones wake the loop again.
  [[maybe_unused]] const auto taken = ::read(wake_.get(), &count, sizeof count);
  std::vector<Command> commands;
  {
    const MutexLock lock(mutex_);
    commands.swap(commands_);
  }
  for (const Command& command : commands) {
    if (!command.cancel) {
      Begin(command.transfer);
    } else if (!command.transfer->finished()) {
      // A transfer not added yet is still with its sender; it ends when it arrives.
      command.transfer->stopped = true;
      if (command.transfer->begun()) End(*command.transfer, Cancelled());
    }
  }
}

void CurlLoop::Begin(const std::shared_ptr<CurlTransfer>& transfer) {
  if (transfer->stopped) return transfer->Finish(Cancelled());
  CURL* easy = TakeHandle();
  if (easy == nullptr) {
    transfer->Finish(Fail(OutOfResources(ENOMEM)));
    return;
  }
  transfers_.emplace(easy, transfer);
  transfer->Begin(curl_, easy, touched_, now_);
  transfer->pool = transfer->is_web_socket()           ? next_pool_++
                   : transfer->public_addresses_only() ? kPublicAddresses
                                                       : kAnyAddress;
  const Pool* const pool = transfer->is_web_socket() ? OpenPool(transfer->pool) : &pools_.at(transfer->pool);
  if (pool == nullptr) return End(*transfer, Fail(OutOfResources(ENOMEM)));
  transfer->multi = pool->multi;
  if (curl_.multi_add_handle(transfer->multi, easy) != CURLM_OK) {
    End(*transfer, Fail(OutOfResources(ENOMEM)));
    return;
  }
  Schedule(*transfer);
}

CURL* CurlLoop::TakeHandle() {
  if (spare_handles_.empty()) return curl_.easy_init();
  CURL* easy = spare_handles_.back();
  spare_handles_.pop_back();
  return easy;
}

void CurlLoop::Act(Pool& pool, curl_socket_t socket, int mask) {
  int running = 0;
  curl_.multi_socket_action(pool.multi, socket, mask, &running);
  ReapFinished(pool);
}

// Ends the batches when no more data is ready or after a moment, so that a stream faster than its display is shown in
// larger pieces.
void CurlLoop::EndBatches() {
  batch_.swap(touched_);
  for (CurlTransfer* transfer : batch_) {
    if (transfer->EndBatch(now_)) {
      LetCallerGo(*transfer);
    } else if (transfer->deadline && (*transfer->deadline)->first > transfer->NextDeadline()) {
      Schedule(*transfer);  // the first batch after a lull
    }
  }
  batch_.clear();
  batch_began_ = now_;
}

void CurlLoop::ReapFinished(Pool& pool) {
  int left = 0;
  while (const CURLMsg* message = curl_.multi_info_read(pool.multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const easy = message->easy_handle;
    const CURLcode result = message->data.result;
    EndBatches();  // a batch ends before its transfer; it may end this one, and the message with it
    const auto found = transfers_.find(easy);
    if (found == transfers_.end()) continue;
    CurlTransfer& transfer = *found->second;
    if (result == CURLE_OK && transfer.is_web_socket()) {
      OpenWebSocket(transfer);
    } else {
      End(transfer, transfer.ResultOf(result));
    }
  }
}

// The connection is no longer libcurl's to watch.
void CurlLoop::OpenWebSocket(CurlTransfer& transfer) {
  const auto socket = transfer.OpenWebSocket(now_);
  if (!socket) return End(transfer, transfer.ResultOf(CURLE_COULDNT_CONNECT));
  pools_.at(transfer.pool).web_socket = &transfer;
  Watch(transfer, EPOLL_CTL_ADD);
  Converse(transfer);
}

void CurlLoop::Converse(CurlTransfer& transfer) {
  CURL* const easy = transfer.easy();
  if (auto ended = transfer.Converse(now_)) {
    EndBatches();  // a batch ends before its transfer; it may end this one
    if (transfers_.contains(easy)) End(transfer, *std::move(ended));
    return;
  }
  if (transfer.has_to_send() != transfer.awaits_room) Watch(transfer, EPOLL_CTL_MOD);
}

void CurlLoop::Watch(CurlTransfer& transfer, int operation) {
  transfer.awaits_room = transfer.has_to_send();
  epoll_event event{};
  event.events = EPOLLIN | (transfer.awaits_room ? EPOLLOUT : 0u);
  event.data.u64 = transfer.pool << 32 | static_cast<std::uint32_t>(transfer.socket);
  ::epoll_ctl(epoll_.get(), operation, transfer.socket, &event);
}

void CurlLoop::FireTimers() {
  for (auto& [index, pool] : pools_) {
    if (!pool.timer || *pool.timer > now_) continue;
    pool.timer.reset();
    Act(pool, CURL_SOCKET_TIMEOUT, 0);
  }
}

// An entry is the time of the next check, not the limit itself. Received bytes move only the limit, so that they cost
// nothing here.
void CurlLoop::CheckDeadlines(SteadyTime now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    CurlTransfer& transfer = *deadlines_.begin()->second;
    if (transfer.finished()) {
      Release(transfer);
    } else if (auto error = transfer.CheckLimits(now)) {
      End(transfer, Fail(*std::move(error)));
    } else if (transfer.EndLull(now)) {
      LetCallerGo(transfer);
    } else {
      Schedule(transfer);
    }
  }
}

void CurlLoop::Schedule(CurlTransfer& transfer) {
  Unschedule(transfer);
  transfer.deadline = deadlines_.emplace(transfer.NextDeadline(), &transfer);
}

void CurlLoop::Unschedule(CurlTransfer& transfer) {
  if (transfer.deadline) deadlines_.erase(*transfer.deadline);
  transfer.deadline.reset();
}

// Ends the request for a handler that wants no more. The transfer may read on for a while, so that the connection can
// be reused.
void CurlLoop::LetCallerGo(CurlTransfer& transfer) {
  if (!transfer.BeginDraining(now_)) {
    End(transfer, transfer.ResultOf(CURLE_OK));
    return;
  }
  transfer.Finish({});
  Schedule(transfer);
}

void CurlLoop::End(CurlTransfer& transfer, Result<void> result) {
  // Release first, because a caller that sees the end may count on a free connection.
  const std::shared_ptr<CurlTransfer> keep = transfers_.at(transfer.easy());
  Release(transfer);
  if (!transfer.finished()) transfer.Finish(std::move(result));
}

void CurlLoop::Release(CurlTransfer& transfer) {
  Unschedule(transfer);
  std::erase(touched_, &transfer);
  CURL* easy = transfer.easy();
  if (transfer.socket != CURL_SOCKET_BAD) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, transfer.socket, nullptr);
  if (transfer.multi != nullptr) curl_.multi_remove_handle(transfer.multi, easy);
  if (transfer.multi != nullptr && transfer.is_web_socket()) {
    pools_.at(transfer.pool).web_socket = nullptr;
    spent_pools_.push_back(transfer.pool);
  }
  curl_.easy_reset(easy);
  curl_.slist_free_all(transfer.headers());
  if (spare_handles_.size() < kMaxSpareHandles) {
    spare_handles_.push_back(easy);
  } else {
    curl_.easy_cleanup(easy);
  }
  transfers_.erase(easy);
}

int CurlLoop::OnSocket(CURL*, curl_socket_t socket, int what, void* pool_pointer, void* known) {
  auto& pool = *static_cast<Pool*>(pool_pointer);
  CurlLoop& loop = *pool.loop;
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(loop.epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);  // the socket may be closed already
    return 0;
  }
  epoll_event event{};
  event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
  event.data.u64 = pool.index << 32 | static_cast<std::uint32_t>(socket);
  const int operation = known != nullptr ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(loop.epoll_.get(), operation, socket, &event) != 0) {
    // The number may belong to a socket that was closed and reused unseen.
    ::epoll_ctl(loop.epoll_.get(), errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
  }
  loop.curl_.multi_assign(pool.multi, socket, &pool);  // marks the socket as known
  return 0;
}

int CurlLoop::OnTimer(CURLM*, long timeout_ms, void* pool_pointer) {
  auto& pool = *static_cast<Pool*>(pool_pointer);
  pool.timer.reset();
  if (timeout_ms >= 0) pool.timer = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  return 0;
}

namespace {

bool StartsWithIgnoringCase(std::string_view text, std::string_view lower_case_prefix) {
  if (text.size() < lower_case_prefix.size()) return false;
  return std::equal(lower_case_prefix.begin(), lower_case_prefix.end(), text.begin(), [](char expected, char c) {
    return expected == (c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c);
  });
}

bool IsToken(std::string_view text) {
  constexpr std::string_view kTokenCharacters =
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !text.empty() && text.find_first_not_of(kTokenCharacters) == std::string_view::npos;
}

bool HasControlCharacter(std::string_view text) {
  return std::ranges::any_of(text,
                             [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

// Refuses requests that could inject a second header or request. Messages do not quote values, which may be secrets.
Result<void> CheckRequest(const HttpRequest& request) {
  if (!StartsWithIgnoringCase(request.url, "http://") && !StartsWithIgnoringCase(request.url, "https://")) {
    return Fail(ErrorCode::kInvalidArgument, "the URL must begin with http:// or https://");
  }
  if (HasControlCharacter(request.url)) return Fail(ErrorCode::kInvalidArgument, "the URL is not valid");
  if (!IsToken(request.method)) return Fail(ErrorCode::kInvalidArgument, "the HTTP method is not valid");
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name)) return Fail(ErrorCode::kInvalidArgument, "a header name is not valid");
    if (HasControlCharacter(value))
      return Fail(ErrorCode::kInvalidArgument, "the value of header " + name + " is not valid");
  }
  return {};
}

}  // namespace

CurlTransport::CurlTransport(long receive_bytes) : receive_bytes_(receive_bytes) {}
CurlTransport::~CurlTransport() = default;

Result<CurlLoop*> CurlTransport::StartedLoop() {
  const MutexLock lock(mutex_);
  if (!loop_) {
    auto loop = TRY(CurlLoop::Start());
    loop_ = std::move(loop);
  }
  return loop_.get();
}

void CurlTransport::Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) {
  if (auto checked = CheckRequest(request); !checked) return done(std::move(checked));
  if (stop.stop_requested()) return done(Fail(ErrorCode::kCancelled, "the request was cancelled"));
  auto loop = StartedLoop();
  if (!loop) return done(Fail(loop.error()));
  const auto transfer = std::make_shared<CurlTransfer>(std::move(request), handler, std::move(done), receive_bytes_);
  // Before adding it, because after that it may end at any moment, and the callback with it.
  transfer->OnStop(std::move(stop), [loop = *loop, weak = std::weak_ptr(transfer)] {
    if (auto stopped = weak.lock()) loop->Cancel(std::move(stopped));
  });
  (*loop)->Add(transfer);
}

}  // namespace reprise
