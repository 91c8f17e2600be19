#include "doors/api/server.h"

#include <poll.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "server_fixture.h"

namespace reprise::server_test {

using namespace std::chrono_literals;

namespace {

constexpr const char* kMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "get", "BREW"};

std::string CodeOf(const TestResponse& response) {
  const auto json = ParseJson(response.body);
  if (!json || !json->contains("error")) return "no error body: " + response.body;
  return (*json)["error"]["code"].get<std::string>();
}

std::size_t ResidentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return static_cast<std::size_t>(std::atoll(line.c_str() + 6));
  }
  return 0;
}

}  // namespace

TEST_CASE("HttpServer: service routes answer over both loopback addresses", "[api]") {
  ServerFixture f;
  const auto health = f.Get("/healthz");
  CHECK(health.status == 200);
  CHECK(health.body == R"({"status":"ok"})");
  CHECK(health.Header("Content-Type") == "application/json");
  CHECK(health.Header("Cache-Control") == "no-store");
  CHECK(health.Header("X-Content-Type-Options") == "nosniff");
  CHECK(f.Get("/readyz").status == 200);
  CHECK(f.Get("/openapi.json").body == "{}");
  TestClient v6(f.port, /*v6=*/true);
  if (v6.connected()) {
    v6.Send("GET /healthz HTTP/1.1\r\nHost: [::1]:" + std::to_string(f.port) + "\r\n\r\n");
    CHECK(v6.ReadResponse().status == 200);
  }
}

TEST_CASE("HttpServer: /readyz says why the server cannot work, /healthz answers anyway", "[api]") {
  ServerOptions options;
  std::atomic<bool> full = true;
  options.ready = [&]() -> Result<void> {
    if (!full) return {};
    return Fail(Error{.code = ErrorCode::kUnavailable, .reason = "storage_full", .message = "no space left"});
  };
  ServerFixture f(std::move(options));
  const auto refused = f.Get("/readyz");
  CHECK(refused.status == 503);
  CHECK(CodeOf(refused) == "storage_full");
  CHECK(refused.Header("Retry-After") == "1");
  CHECK(f.Get("/healthz").status == 200);
  full = false;
  CHECK(f.Get("/readyz").status == 200);
}

TEST_CASE("HttpServer: limits the uploads that are held at once", "[api]") {
  ServerOptions options;
  options.limits.uploads_bytes = 1000;
  ServerFixture f(std::move(options));
  const auto head = [&](std::size_t size) {
    return "POST /chats/c/files HTTP/1.1\r\nHost: localhost:" + std::to_string(f.port) +
           "\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
  };
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  int status = 0;
  {
    TestClient first(f.port);
    first.Send(head(700) + "not all of it");
    TestResponse second;
    while (status != 503 && std::chrono::steady_clock::now() < deadline) {
      TestClient client(f.port);
      client.Send(head(700) + std::string(700, 'x'));
      second = client.ReadResponse();
      status = second.status;
    }
    CHECK(CodeOf(second) == "overloaded");
    CHECK(second.Header("Retry-After") == "1");
  }
  // The first upload is gone; a single one larger than the limit is accepted too.
  while (status == 503 && std::chrono::steady_clock::now() < deadline) {
    TestClient third(f.port);
    third.Send(head(2000) + std::string(2000, 'x'));
    status = third.ReadResponse().status;
  }
  CHECK(status == 404);  // this server stores no files
}

TEST_CASE("HttpServer: no response ever allows another origin", "[api]") {
  ServerFixture f;
  for (const char* method : kMethods) {
    for (const char* path : {"/chats", "/healthz", "/nope"}) {
      const auto own = "Origin: http://localhost:" + std::to_string(f.port) + "\r\n";
      CHECK(Ask(f.port, method, path, {}, own).head.find("Access-Control") == std::string::npos);
    }
  }
}

TEST_CASE("HttpServer: refuses a foreign Host, Origin or site on every method and path", "[api]") {
  ServerFixture f;
  const std::string own_host = "Host: localhost:" + std::to_string(f.port) + "\r\n";
  for (const char* method : kMethods) {
    for (const char* path : {"/healthz", "/chats", "/chats/c/interactions", "/nope", "/%zz"}) {
      for (const std::string& headers : {std::string("Host: evil.example\r\n"), std::string(), own_host + own_host,
                                         own_host + "Origin: http://evil.example\r\n", own_host + "Origin: null\r\n",
                                         own_host + "Sec-Fetch-Site: cross-site\r\n"}) {
        TestClient client(f.port);
        client.Send(std::string(method) + " " + path + " HTTP/1.1\r\n" + headers + "\r\n");
        const auto response = client.ReadResponse(std::string_view(method) == "HEAD");
        INFO(method << " " << path << " " << headers);
        CHECK(response.status == 403);
      }
    }
  }
}

TEST_CASE("HttpServer: never reads a refused body, nor takes it for a request", "[api]") {
  ServerFixture f;
  const std::string host = "Host: localhost:" + std::to_string(f.port) + "\r\n";
  const std::string inner = "POST /chats HTTP/1.1\r\n" + host +
                            "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n" + R"({"id":"smuggled"})";
  const std::string length = "Content-Length: " + std::to_string(inner.size()) + "\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const std::string foreign = host + "Origin: http://evil.example\r\n";
  const std::string heads[] = {
      "POST /chats HTTP/1.1\r\n" + foreign + length + "\r\n",
      "POST /chats HTTP/1.1\r\n" + foreign + chunked + "\r\n",
      "POST /nope HTTP/1.1\r\n" + host + length + "\r\n",
      "POST /chats HTTP/1.1\r\n" + host + "Content-Type: text/plain\r\n" + length + "\r\n",
      "GET /openapi.json HTTP/1.1\r\n" + host + length + "\r\n",
      "GET /chats HTTP/1.1\r\n" + host + length + "\r\n",
      "DELETE /chats/x HTTP/1.1\r\n" + host + chunked + "\r\n",
      "POST /chats HTTP/1.1\r\n" + host + "Content-Length: 0\r\n" + length + "\r\n",
      "POST /chats HTTP/1.1\r\n" + host + "Content-Length: abc\r\n\r\n",
      "POST /chats HTTP/1.1\r\n" + host + chunked + "Content-Length: 4\r\n\r\n",
      "POST /chats HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, identity\r\n\r\n",
      "POST /chats HTTP/1.1\r\n" + host + "Content-Encoding: gzip\r\n" + length + "\r\n",
      "POST /chats HTTP/1.1\r\n" + host + "Expect: miracles\r\n" + length + "\r\n",
  };
  for (const std::string& head : heads) {
    for (const bool two_segments : {false, true}) {
      INFO(head);
      TestClient client(f.port);
      REQUIRE(client.Send(two_segments ? head : head + inner));
      const auto first = client.ReadResponse();
      CHECK(first.status >= 400);
      CHECK(first.status < 500);
      CHECK(first.Header("Connection") == "close");
      client.Send(inner);
      CHECK(client.ReadToEnd().empty());
      CHECK(f.Get("/chats/smuggled").status == 404);
    }
  }
}

TEST_CASE("HttpServer: a body must be JSON by type and by content", "[api]") {
  ServerFixture f;
  const auto post = [&](std::string_view type, std::string_view body) {
    TestClient client(f.port);
    std::string headers = type.empty() ? "" : "Content-Type: " + std::string(type) + "\r\n";
    client.Send(
        RequestText(f.port, "POST", "/chats", {}, headers + "Content-Length: " + std::to_string(body.size()) + "\r\n") +
        std::string(body));
    return client.ReadResponse();
  };
  CHECK(post("text/plain", "{}").status == 415);
  CHECK(post("", "{}").status == 415);
  CHECK(post("application/jsonp", "{}").status == 415);
  CHECK(post("application/json, text/plain", "{}").status == 415);
  CHECK(post("application/json; charset=utf-8", "{}").status == 201);
  CHECK(post("Application/JSON", "{}").status == 201);
  CHECK(post("", "").status == 201);  // no body needs no type
  CHECK(CodeOf(post("application/json", "{")) == "invalid_json");
  CHECK(CodeOf(post("application/json", std::string(100'000, '['))) == "too_deep");
  CHECK(CodeOf(post("application/json", "{\"title\":\"\xff\"}")) == "invalid_utf8");
  const auto gzip = f.Post("/chats", "{}", "Content-Encoding: gzip\r\n");
  CHECK(gzip.status == 415);
  CHECK(CodeOf(gzip) == "unsupported_encoding");
}

TEST_CASE("HttpServer: refuses a body over the limit before it is sent", "[api]") {
  ServerFixture f;
  TestClient client(f.port);
  client.Send(
      RequestText(f.port, "POST", "/chats", {}, "Content-Type: application/json\r\nContent-Length: 2097152\r\n"));
  const auto response = client.ReadResponse();
  CHECK(response.status == 413);
  CHECK(CodeOf(response) == "too_large");
}

TEST_CASE("HttpServer: refuses an endless chunked body at the limit, with flat memory", "[api]") {
  ServerFixture f;
  TestClient client(f.port);
  client.Send(
      RequestText(f.port, "POST", "/chats", {}, "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"));
  const std::string chunk = "10000\r\n" + std::string(0x10000, ' ') + "\r\n";
  const std::size_t before = ResidentKilobytes();
  std::size_t sent = 0;
  while (sent < 3200 && client.Send(chunk)) ++sent;  // up to 200 MB, unless the server closes the connection
  CHECK(sent < 3200);
  CHECK(ResidentKilobytes() < before + 32 * 1024);
  CHECK(f.Get("/healthz").status == 200);
}

TEST_CASE("HttpServer: a client that sends too much can still read the refusal", "[api]") {
  ServerFixture f;
  TestClient client(f.port);
  client.Send(
      RequestText(f.port, "POST", "/chats", {}, "Content-Type: application/json\r\nContent-Length: 2097152\r\n"));
  client.Send(std::string(2'097'152, ' '));
  CHECK(client.ReadResponse().status == 413);
}

TEST_CASE("HttpServer: refuses giant and countless headers, with flat memory", "[api]") {
  ServerFixture f;
  const std::size_t before = ResidentKilobytes();
  const std::string start = "GET / HTTP/1.1\r\nHost: localhost:" + std::to_string(f.port) + "\r\n";
  {
    TestClient client(f.port);
    client.Send(start + "X: ");
    const std::string piece(100'000, 'x');
    for (int i = 0; i < 2000 && client.Send(piece); ++i) {
    }
    CHECK(ResidentKilobytes() < before + 32 * 1024);
  }
  {
    TestClient client(f.port);
    client.Send(start);
    const std::string piece = "A: b\r\n";
    for (int i = 0; i < 1'000'000 && client.Send(piece); ++i) {
    }
    CHECK(ResidentKilobytes() < before + 32 * 1024);
  }
  CHECK(AskRaw(f.port, start + "X: " + std::string(17'000, 'x')).status == 431);
  std::string many = start;
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  CHECK(AskRaw(f.port, many + "\r\n").status == 431);
  CHECK(f.Get("/healthz").status == 200);
  CHECK(f.Get("/" + std::string(3000, 'x')).status == 414);
}

TEST_CASE("HttpServer: answers silent and dripping clients with 408, however steadily they drip", "[api]") {
  ServerOptions options;
  options.header_timeout = 150ms;
  options.body_timeout = 150ms;
  ServerFixture f(options);
  CHECK(TestClient(f.port).ReadResponse().status == 408);
  const auto drip = [&](std::string text) {
    TestClient client(f.port);
    for (const char byte : text) {
      if (!client.Send(std::string(1, byte))) break;
      pollfd ready{.fd = client.fd(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 10) > 0) break;
    }
    return client.ReadResponse().status;
  };
  CHECK(drip("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(2000, 'x')) == 408);
  CHECK(drip(RequestText(f.port, "POST", "/chats", {}, "Content-Type: application/json\r\nContent-Length: 2000\r\n") +
             std::string(1999, ' ')) == 408);
}

TEST_CASE("HttpServer: closes an idle connection without a response", "[api]") {
  ServerOptions options;
  options.idle_timeout = 100ms;
  ServerFixture f(options);
  TestClient client(f.port);
  client.Send(RequestText(f.port, "GET", "/healthz"));
  CHECK(client.ReadResponse().status == 200);
  CHECK(client.ReadToEnd().empty());
}

TEST_CASE("HttpServer: answers pipelined requests in order", "[api]") {
  ServerFixture f;
  TestClient client(f.port);
  client.Send("\r\n" + RequestText(f.port, "POST", "/chats", R"({"id":"a"})") + RequestText(f.port, "GET", "/chats/a") +
              RequestText(f.port, "GET", "/nope") + RequestText(f.port, "HEAD", "/healthz") +
              RequestText(f.port, "DELETE", "/chats/a") + RequestText(f.port, "GET", "/chats/a"));
  CHECK(client.ReadResponse().status == 201);
  CHECK(client.ReadResponse().status == 200);
  CHECK(client.ReadResponse().status == 404);
  CHECK(client.ReadResponse(/*head_request=*/true).status == 200);
  CHECK(client.ReadResponse().status == 200);
  CHECK(client.ReadResponse().status == 404);
}

TEST_CASE("HttpServer: reads a request however it is split", "[api]") {
  ServerFixture f;
  TestClient client(f.port);
  const std::string chunked =
      RequestText(f.port, "POST", "/chats", {}, "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n") +
      "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n";
  for (const std::string& text : {RequestText(f.port, "POST", "/chats", "{}"), chunked, "\r\n\r\n" + chunked}) {
    for (const char byte : text) REQUIRE(client.Send(std::string(1, byte)));
    CHECK(client.ReadResponse().status == 201);
  }
}

TEST_CASE("HttpServer: skips a few blank lines before a request; more end the connection", "[api]") {
  ServerFixture f;
  const auto blank = [](int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += "\r\n";
    return text;
  };
  const std::string request = RequestText(f.port, "GET", "/healthz");
  TestClient client(f.port);
  for (int i = 0; i < 3; ++i) {
    client.Send(blank(8) + request);
    CHECK(client.ReadResponse().status == 200);
  }
  client.Send(blank(9) + request);
  CHECK(client.ReadResponse().status == 400);
  CHECK(client.ReadToEnd().empty());
}

TEST_CASE("HttpServer: a flood of blank lines costs no more than the same bytes of anything else", "[api]") {
  ServerFixture f;
  const auto processor_time = [] {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  const auto work = [&](const std::string& flood, int status) {
    const auto before = processor_time();
    for (int i = 0; i < 40; ++i) {
      TestClient client(f.port);
      client.Send(flood);
      CHECK(client.ReadResponse().status == status);
    }
    return processor_time() - before;
  };
  std::string blank;
  while (blank.size() < 64 * 1024) blank += "\r\n";
  const auto other = work(std::string(blank.size(), 'x'), 414);
  const auto lines = work(blank, 400);
  INFO(other.count() << " " << lines.count());
  CHECK(lines < 8 * other);
}

TEST_CASE("HttpServer: refuses a client once, however many requests it sends together", "[api]") {
  ServerOptions with_token;
  with_token.token = "secret";
  for (const bool token : {false, true}) {
    ServerFixture f(token ? with_token : ServerOptions());
    const std::string host = token ? "127.0.0.1" : "evil.example";
    std::string many;
    for (int i = 0; i < 1000; ++i) many += "GET /healthz HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
    TestClient client(f.port);
    client.Send(many);
    const auto response = client.ReadResponse();
    CHECK(response.status == (token ? 401 : 403));
    CHECK(response.Header("Connection") == "close");
    CHECK(client.ReadToEnd().empty());
    CHECK(f.Get("/metrics", "Authorization: Bearer secret\r\n").body.find("reprise_http_requests_total 2\n") !=
          std::string::npos);
  }
}

TEST_CASE("HttpServer: answers a client that begins with HTTP/2 with the supported version", "[api]") {
  ServerFixture f;
  const auto response = AskRaw(f.port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(64, '\0'));
  CHECK(response.status == 505);
  CHECK(CodeOf(response) == "version_not_supported");
}

TEST_CASE("HttpServer: sends 100-continue only after the checks", "[api]") {
  ServerFixture f;
  const std::string expect = "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: ";
  {
    TestClient client(f.port);
    client.Send(RequestText(f.port, "POST", "/chats", {}, expect + "2\r\n"));
    CHECK(client.ReadUntil("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    client.Send("{}");
    CHECK(client.ReadResponse().status == 201);
  }
  {
    TestClient client(f.port);
    client.Send(RequestText(f.port, "POST", "/chats", {}, expect + "20000000\r\n"));
    CHECK(client.ReadResponse().status == 413);
  }
}

TEST_CASE("HttpServer: HTTP/1.0 and Connection: close end the connection", "[api]") {
  ServerFixture f;
  const std::string host = "Host: localhost:" + std::to_string(f.port) + "\r\n";
  for (const std::string& text : {"GET /healthz HTTP/1.0\r\n" + host + "\r\n",
                                  "GET /healthz HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n"}) {
    TestClient client(f.port);
    client.Send(text);
    const auto response = client.ReadResponse();
    CHECK(response.status == 200);
    CHECK(response.Header("Connection") == "close");
    CHECK(client.ReadToEnd().empty());
  }
}

TEST_CASE("HttpServer: answers unknown paths, methods and slashes", "[api]") {
  ServerFixture f;
  for (const char* path :
       {"/", "/chats/", "/chats/c/interactions/int_001/fork", "/chats/c/tasks", "/files", "/..", "/chats/../healthz"}) {
    INFO(path);
    CHECK(f.Get(path).status == 404);
  }
  const auto put = Ask(f.port, "PUT", "/chats");
  CHECK(put.status == 405);
  CHECK(put.Header("Allow") == "GET, HEAD, POST");
  CHECK(CodeOf(put) == "method_not_allowed");
  CHECK(Ask(f.port, "OPTIONS", "/chats").status == 405);
  CHECK(Ask(f.port, "HEAD", "/chats").status == 200);
}

TEST_CASE("HttpServer: with a token, refuses every request without it before its body", "[api]") {
  ServerOptions options;
  options.token = "s3cret";
  ServerFixture f(options);
  const auto without = f.Get("/healthz");
  CHECK(without.status == 401);
  CHECK(without.Header("WWW-Authenticate").starts_with("Bearer"));
  CHECK(f.Get("/healthz", "Authorization: Bearer wrong\r\n").status == 401);
  CHECK(f.Get("/healthz", "Authorization: Bearer s3cret\r\n").status == 200);
  TestClient client(f.port);
  client.Send(RequestText(f.port, "POST", "/chats", {}, "Content-Length: 1000000000\r\n"));
  CHECK(client.ReadResponse().status == 401);
}

TEST_CASE("HttpServer: answers connections over the limit with 503", "[api]") {
  ServerOptions options;
  options.max_connections = 2;
  ServerFixture f(options);
  TestClient first(f.port), second(f.port);
  for (TestClient* client : {&first, &second}) {
    client->Send(RequestText(f.port, "GET", "/healthz"));
    CHECK(client->ReadResponse().status == 200);
  }
  const auto refused = f.Get("/healthz");
  CHECK(refused.status == 503);
  CHECK(refused.Header("Retry-After") == "1");
}

TEST_CASE("HttpServer: Open refuses options that it cannot serve", "[api]") {
  ServerFixture f;
  const auto code_of = [&](ServerOptions options) {
    const auto opened = OpenServer(*f.engine, std::move(options));
    REQUIRE_FALSE(opened);
    return opened.error().reason;
  };
  ServerOptions taken;
  taken.port = f.port;
  CHECK(code_of(taken) == "address_in_use");
  ServerOptions open_to_all;
  open_to_all.host = "0.0.0.0";
  open_to_all.port = 0;
  CHECK(code_of(open_to_all) == "invalid_request");
  ServerOptions name;
  name.host = "example.org";
  CHECK(code_of(name) == "invalid_request");
}

TEST_CASE("HttpServer: metrics count requests", "[api]") {
  ServerFixture f;
  f.Get("/nope");
  const auto metrics = f.Get("/metrics");
  CHECK(metrics.Header("Content-Type").starts_with("text/plain"));
  CHECK(metrics.body.find("reprise_http_requests_total 2\n") != std::string::npos);
  CHECK(metrics.body.find("reprise_http_responses_total{class=\"4xx\"} 1\n") != std::string::npos);
  CHECK(metrics.body.find("reprise_active_runs 0\n") != std::string::npos);
}

TEST_CASE("HttpServer: stops promptly with idle, silent and half-sent connections", "[api]") {
  ServerOptions options;
  options.header_timeout = 60s;
  ServerFixture f(options);
  TestClient silent(f.port), half(f.port), idle(f.port);
  half.Send("GET /healthz HTTP/1.1\r\nHo");
  idle.Send(RequestText(f.port, "GET", "/healthz"));
  CHECK(idle.ReadResponse().status == 200);
  f.engine->Stop();
  const auto before = std::chrono::steady_clock::now();
  f.server->Stop();
  CHECK(std::chrono::steady_clock::now() - before < 20s);
  CHECK(idle.ReadToEnd().empty());
  CHECK_FALSE(TestClient(f.port).connected());
}

}  // namespace reprise::server_test
