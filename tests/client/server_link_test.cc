#include "client/server_link.h"

#include <map>
#include <memory>
#include <mutex>

#include "support/scripted_server.h"
#include "support/test.h"

namespace reprise::server_link_test {
namespace {

using test::ScriptedConnection;
using test::ScriptedServer;

// Answers everything with {}, but resets the connection of the first request that is `broken`. Each request has its own
// connection, because libcurl repeats a request that fails on a reused one.
class FragileServer {
 public:
  explicit FragileServer(std::string broken) : broken_(std::move(broken)) {}

  std::string url() const { return server_.Url(""); }
  int received(const std::string& request) {
    const std::lock_guard lock(mutex_);
    return received_[request];
  }

 private:
  void Serve(ScriptedConnection& connection) {
    const auto request = connection.ReadRequest();
    if (!request) return;
    const std::string line = request->method + " " + request->target;
    const std::lock_guard lock(mutex_);
    if (++received_[line] == 1 && line == broken_) return connection.Reset();
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
  }

  const std::string broken_;
  std::mutex mutex_;
  std::map<std::string, int> received_;  // "POST /path" -> number of requests
  ScriptedServer server_{[this](ScriptedConnection& connection) { Serve(connection); }};
};

ServerLink LinkTo(const std::string& url) {
  return ServerLink({}, [](const std::string&) { return std::nullopt; }, RunningServer{.url = url}, {});
}

TEST_CASE("ServerLink: repeats a request that may have arrived only if it is harmless", "[client]") {
  for (const auto& [method, times] : std::map<std::string, int>{{"GET", 2}, {"PUT", 2}, {"POST", 1}, {"DELETE", 1}}) {
    CAPTURE(method);
    FragileServer server(method + " /chats/c/undo");
    ServerLink link = LinkTo(server.url());
    REQUIRE(link.Check().has_value());
    REQUIRE(link.Reach("").has_value());
    const auto answer = link.Call(method, "/chats/c/undo");
    CHECK(answer.has_value() == (times == 2));
    if (!answer) CHECK(HowLost(answer.error()) == Loss::kBroken);
    CHECK(server.received(method + " /chats/c/undo") == times);
    CHECK(link.Call("GET", "/chats").has_value());  // the next request arrives
  }
}

TEST_CASE("ServerLink: a request that reaches no server fails as never reached, with the URL", "[client]") {
  auto server = std::make_unique<FragileServer>("");
  ServerLink link = LinkTo(server->url());
  REQUIRE(link.Reach("").has_value());
  const std::string url = server->url();
  server.reset();
  const auto answer = link.Call("POST", "/chats/c/undo", Json::object());
  REQUIRE(!answer);
  CHECK(HowLost(answer.error()) == Loss::kNeverReached);
  CHECK(answer.error().message.find(url) != std::string::npos);
}

TEST_CASE("ServerLink: a server without the wanted model stays unreached", "[client]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    while (const auto request = connection.ReadRequest()) {
      const bool is_list = request->target == "/models";
      connection.SendResponse("200 OK", "application/json",
                              is_list ? R"({"models":[{"name":"a/mini"},{"name":"b/mini"}]})" : "{}");
    }
  });
  ServerLink link({{"model", "mini"}}, [](const std::string&) { return std::nullopt; },
                  RunningServer{.url = server.Url("")}, {});
  for (int i = 0; i < 2; ++i) {
    CAPTURE(i);
    const auto reached = link.Reach("");
    REQUIRE(!reached);
    CHECK(reached.error().message.find("a/mini, b/mini") != std::string::npos);
    CHECK(!link.is_reached());
  }
}

}  // namespace
}  // namespace reprise::server_link_test
