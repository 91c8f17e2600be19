#include "net/curl_transport.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "support/scripted_server.h"
#include "support/test.h"

namespace reprise::curl_transport_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::Gate;
using test::ScriptedConnection;
using test::ScriptedServer;

// Keeps what came; another thread may wait for it.
class RecordingHandler : public HttpResponseHandler {
 public:
  void OnHead(int status, const HttpHeaders& headers) override {
    const std::lock_guard lock(mutex_);
    ++heads_;
    status_ = status;
    headers_ = headers;
    changed_.notify_all();
  }
  bool OnData(std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    body_ += bytes;
    open_batch_ = true;
    changed_.notify_all();
    return body_.size() < enough_at_;
  }
  bool OnBatchEnd() override {
    const std::lock_guard lock(mutex_);
    ++batches_;
    open_batch_ = false;
    changed_.notify_all();
    return true;
  }
  void WaitForBody(std::string_view body) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return body_ == body; });
  }
  void WaitForHead() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return heads_ > 0; });
  }
  void set_enough_at(std::size_t bytes) { enough_at_ = bytes; }
  int status() const { return status_; }
  int heads() const { return heads_; }
  const std::string& body() const { return body_; }
  int batches() const { return batches_; }
  bool open_batch() const { return open_batch_; }
  std::string Header(std::string_view name) const {
    for (const auto& [key, value] : headers_) {
      if (key == name) return value;
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t enough_at_ = std::string::npos;
  int heads_ = 0, status_ = 0, batches_ = 0;
  bool open_batch_ = false;
  HttpHeaders headers_;
  std::string body_;
};

HttpRequest Get(std::string url) {
  HttpRequest request;
  request.url = std::move(url);
  return request;
}

HttpRequest Post(std::string url, std::string body) {
  HttpRequest request = Get(std::move(url));
  request.method = "POST";
  request.body = std::move(body);
  return request;
}

// Answers every request with its own body.
void Echo(ScriptedConnection& connection) {
  while (const auto request = connection.ReadRequest()) {
    connection.SendResponse("200 OK", "text/plain", request->method + " " + request->target + " " + request->body);
  }
}

TEST_CASE("CurlTransport: head, body and batches arrive", "[net]") {
  ScriptedServer server(Echo);
  CurlTransport transport;
  RecordingHandler handler;
  REQUIRE(transport.Perform(Post(server.Url("/a?b=c"), "hello"), handler, {}));
  CHECK(handler.status() == 200);
  CHECK(handler.Header("content-type") == "text/plain");
  CHECK(handler.body() == "POST /a?b=c hello");
  CHECK(handler.batches() >= 1);
  CHECK_FALSE(handler.open_batch());
}

TEST_CASE("CurlTransport: sends exactly the request, without headers that delay or leak", "[net]") {
  std::optional<test::ReceivedRequest> received;
  ScriptedServer server([&](ScriptedConnection& connection) {
    received = connection.ReadRequest();
    connection.SendResponse("204 No Content", "text/plain", "");
  });
  CurlTransport transport;
  RecordingHandler handler;
  HttpRequest request = Post(server.Url("/x"), std::string(2 << 20, 'x'));
  request.headers = {{"Content-Type", "application/json"}, {"X-Empty", ""}, {"X-Test", "a b"}};
  REQUIRE(transport.Perform(request, handler, {}));
  REQUIRE(received);
  CHECK(received->body == request.body);
  CHECK(received->Header("content-type") == "application/json");
  CHECK(received->Header("x-test") == "a b");
  CHECK(received->Header("expect").empty());
  CHECK(std::any_of(received->headers.begin(), received->headers.end(),
                    [](const auto& header) { return header.first == "x-empty" && header.second.empty(); }));
  CHECK(handler.status() == 204);
}

TEST_CASE("CurlTransport: methods", "[net]") {
  ScriptedServer server(Echo);
  CurlTransport transport;
  for (const char* method : {"GET", "DELETE", "PUT", "POST", "PATCH"}) {
    HttpRequest request = Get(server.Url("/m"));
    request.method = method;
    RecordingHandler handler;
    REQUIRE(transport.Perform(request, handler, {}));
    CHECK(handler.body() == std::string(method) + " /m ");
  }
}

TEST_CASE("CurlTransport: a connection is used again", "[net]") {
  ScriptedServer server(Echo);
  CurlTransport transport;
  for (int i = 0; i < 5; ++i) {
    RecordingHandler handler;
    REQUIRE(transport.Perform(Post(server.Url(), "x"), handler, {}));
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("CurlTransport: what acts is not sent again when its connection dies", "[net]") {
  for (const char* method : {"POST", "PATCH", "GET", "PUT"}) {
    for (const std::size_t bytes : {std::size_t{10}, std::size_t{100'000}}) {
      std::atomic<int> acts = 0;
      Gate together;
      std::atomic<int> warm = 0;
      ScriptedServer server([&](ScriptedConnection& connection) {
        while (const auto request = connection.ReadRequest()) {
          if (request->target == "/act" && ++acts < 4) return;  // the connection is closed without an answer
          if (request->target == "/warm" && ++warm == 3) together.Open();
          if (request->target == "/warm") together.Wait();
          connection.SendResponse("200 OK", "text/plain", "x");
        }
      });
      CurlTransport transport;
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) {  // three connections are kept
        threads.emplace_back([&] {
          RecordingHandler handler;
          CHECK(transport.Perform(Get(server.Url("/warm")), handler, {}));
        });
      }
      for (std::thread& thread : threads) thread.join();
      HttpRequest request = Post(server.Url("/act"), std::string(bytes, 'x'));
      request.method = method;
      RecordingHandler handler;
      const auto performed = transport.Perform(request, handler, {});
      CAPTURE(method, bytes);
      const bool is_safe = std::string_view(method) == "GET" || std::string_view(method) == "PUT";
      CHECK(performed.has_value() == is_safe);
      CHECK(acts == (is_safe ? 4 : 1));
      if (!performed) CHECK(performed.error().Is(Reason::kConnectionLost));
    }
  }
}

TEST_CASE("CurlTransport: a handler that stops ends the request and leaves the connection usable", "[net]") {
  Gate rest;
  ScriptedServer server([&](ScriptedConnection& connection) {
    while (connection.ReadRequest()) {
      connection.SendHead("200 OK", "text/event-stream");
      connection.SendChunk("data: [DONE]\n\n");
      if (!rest.Wait(connection.stop())) return;
      connection.SendLastChunk();
    }
  });
  CurlTransport transport;
  RecordingHandler first;
  first.set_enough_at(1);
  REQUIRE(transport.Perform(Post(server.Url(), "x"), first, {}));
  CHECK(first.body() == "data: [DONE]\n\n");
  CHECK(first.batches() == 1);
  rest.Open();
  RecordingHandler second;
  second.set_enough_at(1);
  // The rest of the first response is read in the background: the second request may or may not find it done.
  REQUIRE(transport.Perform(Post(server.Url(), "x"), second, {}));
  RecordingHandler third;
  REQUIRE(transport.Perform(Post(server.Url(), "x"), third, {}));
  CHECK(third.body() == "data: [DONE]\n\n");
  CHECK(server.connections() <= 3);
}

TEST_CASE("CurlTransport: enough on the last bytes still reuses the connection", "[net]") {
  ScriptedServer server(Echo);
  CurlTransport transport;
  for (int i = 0; i < 5; ++i) {
    RecordingHandler handler;
    handler.set_enough_at(1);
    REQUIRE(transport.Perform(Post(server.Url(), "x"), handler, {}));
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("CurlTransport: an endless response is not drained for ever", "[net]") {
  Gate closed;
  ScriptedServer server([&](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/plain");
    while (connection.SendChunk(std::string(4096, 'x'))) {
    }
    closed.Open();
  });
  CurlTransport transport;
  RecordingHandler handler;
  handler.set_enough_at(1);
  REQUIRE(transport.Perform(Get(server.Url()), handler, {}));
  CHECK(closed.Wait());
}

TEST_CASE("CurlTransport: a stop works before the request, before the head and in the body", "[net]") {
  CurlTransport transport;
  std::stop_source stopped;
  stopped.request_stop();
  RecordingHandler unused;
  const auto before = transport.Perform(Get("http://127.0.0.1:1/"), unused, stopped.get_token());
  REQUIRE_FALSE(before);
  CHECK(before.error().code == ErrorCode::kCancelled);

  for (const bool in_body : {false, true}) {
    Gate received;
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      if (in_body) {
        connection.SendHead("200 OK", "text/event-stream");
        connection.SendChunk("data: 1\n\n");
      }
      received.Open();
      connection.WaitForClose();
    });
    RecordingHandler handler;
    std::stop_source source;
    std::jthread canceller([&] {
      received.Wait();
      if (in_body) handler.WaitForBody("data: 1\n\n");
      source.request_stop();
    });
    const auto result = transport.Perform(Get(server.Url()), handler, source.get_token());
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kCancelled);
  }
}

TEST_CASE("CurlTransport: silence is given up after the idle limit, before and after the head", "[net]") {
  for (const bool head : {false, true}) {
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      if (head) connection.SendHead("200 OK", "text/event-stream");
      connection.WaitForClose();
    });
    CurlTransport transport;
    RecordingHandler handler;
    HttpRequest request = Post(server.Url(), "{}");
    request.idle_timeout = 120ms;
    const auto start = steady_clock::now();
    const auto result = transport.Perform(request, handler, {});
    const auto took = steady_clock::now() - start;
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kDeadlineExceeded);
    CHECK(result.error().reason == "idle_timeout");
    CHECK(took >= 120ms);
    CHECK(took < 20s);
  }
}

TEST_CASE("CurlTransport: a talking server outlives the idle limit, but not the total one", "[net]") {
  ScriptedServer server([&](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/event-stream");
    // The pace is the peer's: it only has to be quicker than the limit.
    Gate never;
    std::stop_token stop = connection.stop();
    std::mutex mutex;
    std::condition_variable_any pause;
    while (connection.SendChunk("x")) {
      std::unique_lock lock(mutex);
      if (pause.wait_for(lock, stop, 20ms, [&] { return stop.stop_requested(); })) return;
    }
  });
  CurlTransport transport;
  RecordingHandler handler;
  HttpRequest request = Get(server.Url());
  request.idle_timeout = 1s;
  request.total_timeout = 2500ms;
  const auto start = steady_clock::now();
  const auto result = transport.Perform(request, handler, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().reason == "total_timeout");
  CHECK(steady_clock::now() - start >= 2500ms);
  CHECK(handler.body().size() > 5);
}

TEST_CASE("CurlTransport: failures have their reasons", "[net]") {
  CurlTransport transport;
  RecordingHandler handler;
  const auto reason = [&](const HttpRequest& request) {
    const auto result = transport.Perform(request, handler, {});
    return result ? std::string("ok") : result.error().reason;
  };
  int dead_port;
  {
    ScriptedServer gone([](ScriptedConnection&) {});
    dead_port = gone.port();
  }
  CHECK(reason(Get("http://127.0.0.1:" + std::to_string(dead_port))) == "connection_failed");
  // Too long for a label, so no name server is asked.
  CHECK(reason(Get("http://" + std::string(70, 'x') + "/")) == "name_not_resolved");
  CHECK(reason(Get("ftp://127.0.0.1/")) == "invalid_request");
  CHECK(reason(Get("http://[:")) == "invalid_request");
  CHECK(reason(Get("http://127.0.0.1:1/\r\nX: y")) == "invalid_request");
  HttpRequest injected = Get("http://127.0.0.1:1/");
  injected.headers = {{"X-Test", "secret\r\nX-Other: y"}};
  const auto refused = transport.Perform(injected, handler, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message.find("secret") == std::string::npos);

  ScriptedServer plain([](ScriptedConnection& connection) { connection.Send("HTTP/1.1 200 OK\r\n\r\n"); });
  CHECK(reason(Get("https://127.0.0.1:" + std::to_string(plain.port()))) == "tls_failed");
  for (const char* answer : {"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", "SSH-2.0-OpenSSH\r\n"}) {
    INFO(answer);
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.Send(answer);
    });
    CHECK(reason(Get(server.Url())) == "connection_lost");
  }
  ScriptedServer resets([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Reset();
  });
  CHECK(reason(Get(resets.Url())) == "connection_lost");
  ScriptedServer long_head([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Send("HTTP/1.1 200 OK\r\n");
    while (connection.Send("X-Long: " + std::string(8000, 'x') + "\r\n")) {
    }
  });
  CHECK(reason(Get(long_head.Url())) == "head_too_large");
}

TEST_CASE("CurlTransport: a connection that is never accepted times out", "[net]") {
  // A listener whose queue is full drops further connection attempts.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(::listen(listener, 0) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  std::vector<int> fillers;
  for (int i = 0; i < 3; ++i) {
    const int filler = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)::connect(filler, reinterpret_cast<sockaddr*>(&address), length);
    fillers.push_back(filler);
  }
  CurlTransport transport;
  RecordingHandler handler;
  HttpRequest request = Get("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  request.connect_timeout = 150ms;
  request.idle_timeout = 50ms;  // does not count while connecting
  const auto result = transport.Perform(request, handler, {});
  for (const int filler : fillers) ::close(filler);
  ::close(listener);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(result.error().reason == "connect_timeout");
}

TEST_CASE("CurlTransport: informational heads are not shown", "[net]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
    connection.SendResponse("404 Not Found", "text/plain", "no");
  });
  CurlTransport transport;
  RecordingHandler handler;
  REQUIRE(transport.Perform(Get(server.Url()), handler, {}));
  CHECK(handler.heads() == 1);
  CHECK(handler.status() == 404);
  CHECK(handler.Header("link").empty());
}

TEST_CASE("CurlTransport: headers that are too large are named, in one line or in many", "[net]") {
  for (const bool one_line : {true, false}) {
    INFO(one_line);
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
      for (int i = 0; i < 100; ++i) {
        head += (one_line && i > 0 ? "" : "X-Long: ") + std::string(3000, 'x') + (one_line && i < 99 ? "" : "\r\n");
      }
      connection.Send(head + "\r\n");
      connection.WaitForClose();
    });
    CurlTransport transport;
    RecordingHandler handler;
    const auto result = transport.Perform(Get(server.Url()), handler, {});
    REQUIRE_FALSE(result);
    CHECK(result.error().reason == "head_too_large");
    CHECK_FALSE(result.error().retryable);
  }
}

TEST_CASE("CurlTransport: redirects are followed up to the limit and only then shown", "[net]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    while (const auto request = connection.ReadRequest()) {
      const int left = std::stoi(request->target.substr(1));
      if (left == 0) {
        connection.SendResponse("200 OK", "text/plain", "there");
      } else {
        connection.Send("HTTP/1.1 302 Found\r\nLocation: /" + std::to_string(left - 1) +
                        "\r\nContent-Length: 4\r\n\r\nmove");
      }
    }
  });
  CurlTransport transport;
  HttpRequest request = Get(server.Url("/2"));
  RecordingHandler shown;
  REQUIRE(transport.Perform(request, shown, {}));
  CHECK(shown.status() == 302);
  CHECK(shown.body() == "move");
  request.max_redirects = 2;
  RecordingHandler followed;
  REQUIRE(transport.Perform(request, followed, {}));
  CHECK(followed.heads() == 1);
  CHECK(followed.status() == 200);
  CHECK(followed.body() == "there");
  request.max_redirects = 1;
  RecordingHandler stopped;
  const auto result = transport.Perform(request, stopped, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().reason == "too_many_redirects");
}

TEST_CASE("CurlTransport: a redirect leads to http and https only", "[net]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Send("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n");
  });
  CurlTransport transport;
  HttpRequest request = Get(server.Url());
  request.max_redirects = 3;
  RecordingHandler handler;
  const auto result = transport.Perform(request, handler, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kForbidden);
  CHECK(handler.heads() == 0);
}

TEST_CASE("CurlTransport: with public addresses only, nothing local is connected to", "[net]") {
  ScriptedServer server(Echo);
  CurlTransport transport;
  // A kept connection to the same place must not be a way around the check.
  RecordingHandler open;
  REQUIRE(transport.Perform(Get(server.Url()), open, {}));
  REQUIRE(server.connections() == 1);
  const std::string port = std::to_string(server.port());
  for (const std::string host :
       {"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "2130706433", "127.1"}) {
    INFO(host);
    HttpRequest request = Get("http://" + host + ":" + port + "/");
    request.public_addresses_only = true;
    request.max_redirects = 3;
    RecordingHandler handler;
    const auto result = transport.Perform(request, handler, {});
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::kForbidden);
    CHECK(result.error().reason == "address_not_allowed");
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("CurlTransport: a handler that throws ends its own transfer only", "[net]") {
  struct Throwing : HttpResponseHandler {
    void OnHead(int, const HttpHeaders&) override {}
    bool OnData(std::string_view) override { throw std::runtime_error("broken"); }
  };
  ScriptedServer server(Echo);
  CurlTransport transport;
  Throwing throwing;
  const auto result = transport.Perform(Get(server.Url()), throwing, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kInternal);
  RecordingHandler handler;
  CHECK(transport.Perform(Get(server.Url()), handler, {}));
}

TEST_CASE("CurlTransport: many transfers from many threads, some cancelled", "[net]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    while (const auto request = connection.ReadRequest()) {
      if (request->target == "/silent") {
        connection.WaitForClose();
        return;
      }
      connection.SendHead("200 OK", "text/plain");
      for (int i = 0; i < 20; ++i) connection.SendChunk("0123456789");
      connection.SendLastChunk();
    }
  });
  CurlTransport transport;
  std::atomic<int> complete{0}, cancelled{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          RecordingHandler handler;
          if ((t + i) % 4 != 0) {
            const auto result = transport.Perform(Get(server.Url("/talk")), handler, {});
            complete += result && handler.body().size() == 200 && !handler.open_batch();
            continue;
          }
          std::stop_source source;
          std::jthread canceller([&] { source.request_stop(); });
          const auto result = transport.Perform(Get(server.Url("/silent")), handler, source.get_token());
          cancelled += !result && result.error().code == ErrorCode::kCancelled;
        }
      });
    }
  }
  CHECK(complete == 240);
  CHECK(cancelled == 80);
}

long ResidentKb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return 0;
}

TEST_CASE("CurlTransport: cancel latency", "[.bench]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/event-stream");
    connection.WaitForClose();
  });
  CurlTransport transport;
  std::vector<double> latencies;
  for (int i = 0; i < 300; ++i) {
    RecordingHandler handler;
    std::stop_source source;
    steady_clock::time_point cancelled;
    std::jthread canceller([&] {
      handler.WaitForHead();
      cancelled = steady_clock::now();
      source.request_stop();
    });
    (void)transport.Perform(Get(server.Url()), handler, source.get_token());
    const auto now = steady_clock::now();
    canceller.join();
    latencies.push_back(std::chrono::duration<double, std::micro>(now - cancelled).count());
  }
  std::sort(latencies.begin(), latencies.end());
  WARN("cancel latency us: p50 " << latencies[latencies.size() / 2] << " p99 " << latencies[latencies.size() * 99 / 100]
                                 << " max " << latencies.back());
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The peer is a process of its own, so that what is measured is ours: it gives every connection a head, waits until all
// are there, and then sends each an event `per_second` times a second.
TEST_CASE("CurlTransport: a thousand streams", "[.bench]") {
  constexpr int kStreams = 1000, kRounds = 100;
  constexpr auto kPause = 50ms;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(::listen(listener, kStreams) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  int go[2];
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<int> peers;
    char buffer[4096];
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n";
    for (int i = 0; i < kStreams; ++i) {
      peers.push_back(::accept(listener, nullptr, nullptr));
      (void)!::read(peers.back(), buffer, sizeof buffer);
      (void)!::write(peers.back(), head.data(), head.size());
    }
    (void)!::read(go[0], buffer, 1);
    const std::string event = "data: " + std::string(190, 'x') + "\n\n";
    auto next = steady_clock::now();
    for (int round = 0; round < kRounds; ++round) {
      next += kPause;
      for (const int peer : peers) (void)!::write(peer, event.data(), event.size());
      std::this_thread::sleep_until(next);  // the pace of the load, not a synchronisation
    }
    ::_exit(0);
  }
  struct Counting : HttpResponseHandler {
    explicit Counting(std::atomic<long>& counted) : bytes(counted) {}
    void OnHead(int, const HttpHeaders&) override {}
    bool OnData(std::string_view data) override {
      bytes += static_cast<long>(data.size());
      return true;
    }
    std::atomic<long>& bytes;
  };
  std::atomic<long> bytes{0};
  CurlTransport transport;
  // Threads first: their stacks are not the transport's.
  Gate start;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kStreams; ++i) {
    threads.emplace_back([&] {
      start.Wait();
      Counting counting(bytes);
      const HttpRequest request = Post("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), "{}");
      const auto result = transport.Perform(request, counting, {});
      if (!result) std::abort();
    });
  }
  const long before = ResidentKb();
  start.Open();
  while (bytes < kStreams * 9) std::this_thread::yield();
  const long idle = ResidentKb();
  const double cpu = CpuSeconds();
  const auto started = steady_clock::now();
  REQUIRE(::write(go[1], "x", 1) == 1);
  threads.clear();
  const std::chrono::duration<double> took = steady_clock::now() - started;
  ::waitpid(child, nullptr, 0);
  ::close(listener);
  WARN("resident KB: before " << before << ", idle streams " << idle << ", per stream "
                              << static_cast<double>(idle - before) / kStreams << "; after load " << ResidentKb());
  WARN(kStreams * kRounds << " events in " << took.count() << " s, cpu " << CpuSeconds() - cpu << " s");
  CHECK(bytes == kStreams * (9 + kRounds * 198));
}

}  // namespace
}  // namespace reprise::curl_transport_test
