#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/system.h"
#include "net/curl_transfer.h"
#include "reprise/transport.h"

namespace reprise {

// Runs the transfers on one thread with an epoll loop that hands libcurl only the ready sockets
// (curl_multi_socket_action; curl_multi_poll would walk through all transfers at each wake-up). An idle loop sleeps.
class CurlLoop {
 public:
  // kUnavailable if the process is out of descriptors or threads; kInternal without libcurl.
  static Result<std::unique_ptr<CurlLoop>> Start();
  // Ends the remaining transfers with kCancelled.
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  // Thread-safe; return at once.
  void Add(std::shared_ptr<CurlTransfer> transfer) { Post({std::move(transfer), /*cancel=*/false}); }
  // Has no effect on an ended transfer. One that is not added yet ends when it arrives.
  void Cancel(std::shared_ptr<CurlTransfer> transfer) { Post({std::move(transfer), /*cancel=*/true}); }

 private:
  // Connections and libcurl's timer for them.
  struct Pool {
    CurlLoop* loop = nullptr;
    std::uint64_t index = 0;
    CURLM* multi = nullptr;
    CurlTransfer* web_socket = nullptr;  // that is open: its socket is not libcurl's to watch
    std::optional<SteadyTime> timer;
  };
  struct Command {
    std::shared_ptr<CurlTransfer> transfer;
    bool cancel;
  };

  CurlLoop(const CurlLibrary& curl, UniqueFd epoll, UniqueFd wake)
      : curl_(curl), epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  Pool* OpenPool(std::uint64_t index);
  void CloseSpentPools();
  static int OnSocket(CURL* easy, curl_socket_t socket, int what, void* pool, void* known);
  static int OnTimer(CURLM* multi, long timeout_ms, void* pool);

  void Post(Command command);
  void Wake();
  void Run(std::stop_token stop);
  int EpollTimeout() const;
  void RunCommands();
  void Begin(const std::shared_ptr<CurlTransfer>& transfer);
  void Act(Pool& pool, curl_socket_t socket, int mask);
  void FireTimers();
  void OpenWebSocket(CurlTransfer& transfer);
  void Converse(CurlTransfer& transfer);
  void Watch(CurlTransfer& transfer, int operation);
  void CheckDeadlines(SteadyTime now);
  void EndBatches();
  void ReapFinished(Pool& pool);
  void Schedule(CurlTransfer& transfer);
  void Unschedule(CurlTransfer& transfer);
  void LetCallerGo(CurlTransfer& transfer);
  void End(CurlTransfer& transfer, Result<void> result);
  void Release(CurlTransfer& transfer);
  CURL* TakeHandle();

  // --- constant after construction
  const CurlLibrary& curl_;
  const UniqueFd epoll_;
  const UniqueFd wake_;

  // --- any thread's
  Mutex mutex_;
  std::vector<Command> commands_ GUARDED_BY(mutex_);

  // --- the loop thread's
  // Transfers restricted to public addresses share no connections with the others, because a kept connection is reused
  // without a check of its address, even after a redirect.
  // A WebSocket has a pool of its own: libcurl closes other connections of a pool that have data to read.
  std::map<std::uint64_t, Pool> pools_;  // by their index
  std::uint64_t next_pool_ = 2;
  std::vector<std::uint64_t> spent_pools_;  // to be closed when libcurl no longer runs
  std::unordered_map<CURL*, std::shared_ptr<CurlTransfer>> transfers_;
  TransferDeadlines deadlines_;
  std::vector<CurlTransfer*> touched_;  // since the last EndBatches
  std::vector<CurlTransfer*> batch_;    // scratch of EndBatches, kept for its capacity
  SteadyTime batch_began_;
  std::vector<CURL*> spare_handles_;
  SteadyTime now_;

  std::jthread thread_;  // last, so that it ends first
};

class CurlLoop;

// A Transport over libcurl: one thread with one epoll loop serves all transfers. The first request loads the library
// and starts the thread, so that a server that never calls out pays for neither.
//
// Beyond the contract: if a handler returns false, the request ends at once, while a short rest of the response (a
// quarter of a second, 64 KiB) is read in the background so that the connection can be reused. While connecting,
// connect_timeout and total_timeout count, but not idle_timeout; the progress of a large upload resets idle_timeout.
// More than max_redirects is kUnavailable (reason "too_many_redirects"). A batch ends once more when no byte has come
// for three seconds after it, so that a handler may stop waiting.
class CurlTransport : public Transport {
 public:
  // The size of one read from a socket, and of libcurl's buffer for each active transfer.
  static constexpr long kSmallReads = 2 << 10;   // a thousand streams of small events
  static constexpr long kLargeReads = 64 << 10;  // one stream at full speed
  explicit CurlTransport(long receive_bytes = kSmallReads);
  // REQUIRES: no request is under way.
  ~CurlTransport() override;
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) override;

 private:
  Result<CurlLoop*> StartedLoop();

  const long receive_bytes_;
  Mutex mutex_;
  std::unique_ptr<CurlLoop> loop_ GUARDED_BY(mutex_);
};

}  // namespace reprise
