#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared_library.h"
#include "net/web_socket.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// The functions of libcurl that we use, looked up at run time. libcurl is not linked because it loads about thirty
// further libraries (6 MB of resident memory), which an idle server or one with the offline model never needs.
struct CurlLibrary : SharedLibrary {
  CurlLibrary() : SharedLibrary(kCurlLibrary) {}

  decltype(&::curl_global_init) global_init = Find("curl_global_init");
  decltype(&::curl_easy_init) easy_init = Find("curl_easy_init");
  decltype(&::curl_easy_cleanup) easy_cleanup = Find("curl_easy_cleanup");
  decltype(&::curl_easy_reset) easy_reset = Find("curl_easy_reset");
  decltype(&::curl_easy_setopt) easy_setopt = Find("curl_easy_setopt");
  decltype(&::curl_easy_getinfo) easy_getinfo = Find("curl_easy_getinfo");
  decltype(&::curl_easy_recv) easy_recv = Find("curl_easy_recv");
  decltype(&::curl_easy_send) easy_send = Find("curl_easy_send");
  decltype(&::curl_easy_strerror) easy_strerror = Find("curl_easy_strerror");
  decltype(&::curl_slist_append) slist_append = Find("curl_slist_append");
  decltype(&::curl_slist_free_all) slist_free_all = Find("curl_slist_free_all");
  decltype(&::curl_multi_init) multi_init = Find("curl_multi_init");
  decltype(&::curl_multi_cleanup) multi_cleanup = Find("curl_multi_cleanup");
  decltype(&::curl_multi_setopt) multi_setopt = Find("curl_multi_setopt");
  decltype(&::curl_multi_add_handle) multi_add_handle = Find("curl_multi_add_handle");
  decltype(&::curl_multi_remove_handle) multi_remove_handle = Find("curl_multi_remove_handle");
  decltype(&::curl_multi_socket_action) multi_socket_action = Find("curl_multi_socket_action");
  decltype(&::curl_multi_assign) multi_assign = Find("curl_multi_assign");
  decltype(&::curl_multi_info_read) multi_info_read = Find("curl_multi_info_read");

  // The first call loads and initialises the library; later calls return the same result at no cost. Thread-safe. The
  // library stays loaded. kInternal if it is missing or too old.
  static Result<const CurlLibrary*> Load();
};

class CurlTransfer;
using SteadyTime = std::chrono::steady_clock::time_point;
using TransferDeadlines = std::multimap<SteadyTime, CurlTransfer*>;

// One request under way: sets up the easy handle, receives libcurl's callbacks and knows the time limits. The sender
// constructs it and calls OnStop; all other methods belong to the loop's thread.
class CurlTransfer {
 public:
  // `handler` must live until `done` is called. `receive_bytes` as in CurlTransport.
  CurlTransfer(HttpRequest request, HttpResponseHandler& handler, Transport::Done done, long receive_bytes)
      : request_(std::move(request)), handler_(&handler), done_(std::move(done)), receive_bytes_(receive_bytes) {}
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  // REQUIRES: not added to the loop yet. Any thread may call `call` until Finish.
  void OnStop(std::stop_token stop, std::function<void()> call) { on_stop_.emplace(std::move(stop), std::move(call)); }

  // Configures `easy` for the request. A transfer that receives bytes adds itself to `touched`, which must outlive it.
  void Begin(const CurlLibrary& curl, CURL* easy, std::vector<CurlTransfer*>& touched, SteadyTime now);
  // Calls `done`. The handler is not used afterwards.
  void Finish(Result<void> result);
  bool begun() const { return easy_ != nullptr; }
  bool finished() const { return handler_ == nullptr; }
  bool public_addresses_only() const { return request_.public_addresses_only; }

  // A WebSocket: libcurl only connects, and the rest is ours.
  bool is_web_socket() const { return is_web_socket_; }
  // The connection stands. Its descriptor, or nullopt.
  std::optional<curl_socket_t> OpenWebSocket(SteadyTime now);
  // Reads and writes what the open connection allows. The result, once the WebSocket has ended.
  std::optional<Result<void>> Converse(SteadyTime now);
  bool has_to_send() const { return web_socket_ && !web_socket_->to_send().empty(); }

  // Ends a batch: all data of one socket action has been handed over. True if the handler wants no more.
  bool EndBatch(SteadyTime now);
  // Called at a deadline: ends the batch once more if a lull has begun. True if the handler wants no more.
  bool EndLull(SteadyTime now);
  // Translates libcurl's result for the caller.
  Result<void> ResultOf(CURLcode code) const;

  // Starts reading the small rest of the response without a caller. False if that is pointless.
  bool BeginDraining(SteadyTime now);

  // The time of the next check of the limits.
  SteadyTime NextDeadline() const;
  // Called at a deadline: the error if a limit has really passed (limits move as bytes are transferred).
  std::optional<Error> CheckLimits(SteadyTime now);

  CURL* easy() const { return easy_; }
  curl_slist* headers() const { return headers_; }

  // The loop's own data.
  CURLM* multi = nullptr;
  bool stopped = false;
  std::optional<TransferDeadlines::iterator> deadline;
  std::uint64_t pool = 0;                  // see CurlLoop
  curl_socket_t socket = CURL_SOCKET_BAD;  // of an open WebSocket
  bool awaits_room = false;                // that socket is watched for room to write

 private:
  static std::size_t OnHeader(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t OnBody(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t OnReadUpload(char* to, std::size_t size, std::size_t count, void* self);
  static int OnSeekUpload(void* self, curl_off_t offset, int origin);
  static int OnRequest(void* self, char* there, char* here, int port_there, int port_here);
  static curl_socket_t OnOpenSocket(void* self, curlsocktype purpose, curl_sockaddr* address);

  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_->easy_setopt(easy_, option, value);
  }
  void SetConnection();
  void SetTunnel();
  void SetMethodAndBody();
  void SetHeaders();
  void SetSignature();
  void Touch();
  void TellBatchEnd();
  bool TakeHeaderLine(std::string_view line);
  bool TakeBody(std::string_view bytes);
  bool EndHead();
  void TakeHandshake(int status, HttpHeaders headers, std::string_view body);
  bool Send();
  bool WholeBodySent() const;
  template <typename Value>
  Value Info(CURLINFO info) const {
    Value value{};
    curl_->easy_getinfo(easy_, info, &value);
    return value;
  }

  HttpRequest request_;
  HttpResponseHandler* handler_;  // the caller's; null once finished, because then the caller may be gone
  Transport::Done done_;
  const long receive_bytes_;
  const bool is_web_socket_ = !request_.messages.empty();
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;

  std::unique_ptr<WebSocket> web_socket_;  // once its connection stands

  const CurlLibrary* curl_ = nullptr;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  std::vector<CurlTransfer*>* touched_list_ = nullptr;

  SteadyTime started_;
  SteadyTime last_life_;  // when a byte was last transferred
  std::size_t upload_offset_ = 0;
  curl_off_t body_bytes_ = 0;

  HttpHeaders head_;
  std::size_t head_bytes_ = 0;
  int status_ = 0;
  bool reading_head_ = false;
  bool is_unanswered_ = false;  // sent at least once, and nothing came back since
  bool head_done_ = false;      // the final head has been handed over
  bool touched_ = false;
  bool got_body_ = false;     // since the last EndBatch
  bool awaits_lull_ = false;  // EndLull has not told of the silence after the last batch
  bool enough_ = false;       // the handler wants no more
  bool address_refused_ = false;
  bool head_too_large_ = false;
  bool handler_threw_ = false;

  std::optional<SteadyTime> draining_until_;
  std::size_t drained_ = 0;
};

}  // namespace reprise
