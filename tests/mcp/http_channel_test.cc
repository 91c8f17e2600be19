#include "mcp/http_channel.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "mcp/client.h"
#include "mcp/session.h"
#include "net/curl_transport.h"
#include "support/scripted_server.h"
#include "support/test.h"

namespace reprise::http_channel_test {
namespace {

using test::ReceivedRequest;
using test::ScriptedConnection;
using test::ScriptedServer;

std::string SseEvent(const std::string& data, const std::string& id = "") {
  return (id.empty() ? "" : "id: " + id + "\n") + "data: " + data + "\n\n";
}

std::string ResultFor(const Json& request, const Json& result) {
  return DumpJson({{"jsonrpc", "2.0"}, {"id", request["id"]}, {"result", result}});
}

Json TextResult(const std::string& text) { return {{"content", {{{"type", "text"}, {"text", text}}}}}; }

// A streamable HTTP server that greets by itself and leaves tool calls, and what else a test wants to see, to it.
class McpHttpServer {
 public:
  // True if it has answered.
  using Handler = std::function<bool(ScriptedConnection&, const ReceivedRequest&, const Json& message)>;
  explicit McpHttpServer(Handler handler)
      : handler_(std::move(handler)), server_([this](ScriptedConnection& connection) { Serve(connection); }) {}

  std::string Url() const { return server_.Url("/mcp"); }
  std::vector<ReceivedRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t Count(const std::string& method) const {
    std::size_t count = 0;
    for (const ReceivedRequest& request : requests()) count += request.method == method;
    return count;
  }

 private:
  void Serve(ScriptedConnection& connection) {
    while (auto request = connection.ReadRequest()) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(*request);
      }
      const auto parsed = ParseJson(request->body);
      const Json message = parsed ? *parsed : Json::object();
      if (handler_(connection, *request, message)) continue;
      if (request->method == "GET") {
        connection.SendResponse("405 Method Not Allowed", "text/plain", "no");
      } else if (request->method == "DELETE") {
        connection.SendResponse("200 OK", "text/plain", "");
      } else if (message.value("method", "") == "initialize") {
        const std::string body = ResultFor(message, {{"protocolVersion", "2025-11-25"},
                                                     {"capabilities", {{"tools", Json::object()}}},
                                                     {"serverInfo", {{"name", "web"}, {"version", "2"}}}});
        connection.Send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-1\r\nContent-Length: " +
                        std::to_string(body.size()) + "\r\n\r\n" + body);
      } else if (!message.contains("id")) {
        connection.Send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
      } else {
        connection.SendResponse("200 OK", "application/json", ResultFor(message, TextResult("default")));
      }
    }
  }

  const Handler handler_;
  mutable std::mutex mutex_;
  std::vector<ReceivedRequest> requests_;  // guarded by mutex_
  ScriptedServer server_;
};

const RequestOptions kLimits{.timeout = std::chrono::seconds(30)};

struct Client {
  explicit Client(const std::string& url) : session(OpenHttpChannel(transport, {url, {{"X-Token", "t"}}}), {}) {}
  Result<ServerFacts> Greet() { return Initialize(session, "1", kLimits); }
  std::string Call() {
    const auto outcome = CallTool(session, "tool", "{}", kLimits);
    return outcome ? outcome->output : "FAILED: " + outcome.error().message;
  }
  CurlTransport transport;
  Session session;
};

bool IsCall(const Json& message) { return message.is_object() && message.value("method", "") == "tools/call"; }

}  // namespace

TEST_CASE("HttpChannel: JSON answers, session, version and the user's headers, DELETE at the end", "[mcp]") {
  McpHttpServer server([](auto&, auto&, auto&) { return false; });
  {
    Client client(server.Url());
    REQUIRE(client.Greet().has_value());
    CHECK(client.Call() == "default");
  }
  for (const ReceivedRequest& request : server.requests()) {
    INFO(request.method + " " + request.body);
    const bool first = request.body.find("\"initialize\"") != std::string::npos;
    CHECK(request.Header("mcp-session-id") == (first ? "" : "s-1"));
    CHECK(request.Header("mcp-protocol-version") == (first ? "" : "2025-11-25"));
    CHECK(request.Header("x-token") == "t");
    if (request.method == "POST") CHECK(request.Header("accept") == "application/json, text/event-stream");
  }
  // It need not arrive last, because "initialized" uses its own connection, which the client does not wait for.
  CHECK(server.Count("DELETE") == 1);
}

TEST_CASE("HttpChannel: an answer in a stream, with progress before it", "[mcp]") {
  McpHttpServer server([](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message)) return false;
    const Json progress = {
        {"jsonrpc", "2.0"},
        {"method", "notifications/progress"},
        {"params", {{"progressToken", message["params"]["_meta"]["progressToken"]}, {"progress", 1}}}};
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendChunk(SseEvent(DumpJson(progress)) + SseEvent(ResultFor(message, TextResult("streamed"))));
    connection.SendLastChunk();
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  std::vector<std::string> progress;
  RequestOptions options = kLimits;
  options.on_progress = [&](std::string_view text) { progress.emplace_back(text); };
  const auto outcome = CallTool(client.session, "tool", "{}", options);
  REQUIRE(outcome.has_value());
  CHECK(outcome->output == "streamed");
  CHECK(progress == std::vector<std::string>{"1"});
}

TEST_CASE("HttpChannel: a broken stream is resumed with Last-Event-ID, and the call is not sent again", "[mcp]") {
  Json asked;
  McpHttpServer server([&](ScriptedConnection& connection, const ReceivedRequest& request, const Json& message) {
    if (IsCall(message)) {
      asked = message;
      connection.SendHead("200 OK", "text/event-stream");
      connection.SendChunk("id: e-1\nretry: 50\ndata: \n\n");
      connection.SendLastChunk();
      return true;
    }
    const std::string from = request.Header("last-event-id");
    if (request.method != "GET" || from.empty()) return false;
    connection.SendHead("200 OK", "text/event-stream");
    if (from == "e-1") {
      connection.SendChunk("id: e-2\ndata: \n\n");
      connection.Reset();  // breaks for good this time
    } else {
      connection.SendChunk(SseEvent(ResultFor(asked, TextResult("resumed from " + from)), "e-3"));
      connection.SendLastChunk();
    }
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "resumed from e-2");
  std::size_t calls = 0;
  for (const ReceivedRequest& request : server.requests())
    calls += request.body.find("tools/call") != std::string::npos;
  CHECK(calls == 1);
}

TEST_CASE("HttpChannel: a stream that was lost is told as that, not as the status of the attempt to resume it",
          "[mcp]") {
  for (const bool breaks : {true, false}) {
    INFO(breaks);
    McpHttpServer server([&](ScriptedConnection& connection, const ReceivedRequest& request, const Json& message) {
      if (IsCall(message)) {
        connection.SendHead("200 OK", "text/event-stream");
        connection.SendChunk("id: e-1\nretry: 1\ndata: \n\n");
        if (breaks) {
          connection.Reset();
        } else {
          connection.SendLastChunk();
        }
        return true;
      }
      if (request.method != "GET" || request.Header("last-event-id").empty()) return false;
      connection.SendResponse("405 Method Not Allowed", "text/plain", "");
      return true;
    });
    Client client(server.Url());
    REQUIRE(client.Greet().has_value());
    const std::string told = client.Call();
    INFO(told);
    CHECK(told.starts_with("FAILED: "));
    CHECK(told.find("405") == std::string::npos);
    if (!breaks) CHECK(told == "FAILED: the server sent no answer");
  }
}

TEST_CASE("HttpChannel: a stream that ends without an answer and without ids is an error", "[mcp]") {
  McpHttpServer server([](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message)) return false;
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendLastChunk();
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "FAILED: the server sent no answer");
  CHECK_FALSE(client.session.closed().has_value());
}

TEST_CASE("HttpChannel: a forgotten session closes the channel", "[mcp]") {
  McpHttpServer server([](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message)) return false;
    connection.SendResponse("404 Not Found", "text/plain", "?");
    return true;
  });
  {
    Client client(server.Url());
    REQUIRE(client.Greet().has_value());
    CHECK(client.Call() == "FAILED: the server has ended the session");
    REQUIRE(client.session.closed().has_value());
    CHECK(client.session.closed()->reason == "mcp_session_ended");
  }
  CHECK(server.Count("DELETE") == 0);
}

TEST_CASE("HttpChannel: a forgotten session fails only its request, and others still get their answers", "[mcp]") {
  test::Gate arrived, answers;
  std::atomic<int> calls = 0;
  McpHttpServer server([&](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message)) return false;
    ++calls;
    if (message["params"]["name"] == "slow") {
      arrived.Open();
      if (answers.Wait()) connection.SendResponse("200 OK", "application/json", ResultFor(message, TextResult("done")));
      return true;
    }
    connection.SendResponse("404 Not Found", "application/json", "{}");
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  Result<ToolOutcome> slow;
  std::thread other([&] { slow = CallTool(client.session, "slow", "{}", kLimits); });
  CHECK(arrived.Wait());
  CHECK(client.Call() == "FAILED: the server has ended the session");
  REQUIRE(client.session.closed().has_value());
  CHECK(client.Call() == "FAILED: the server has ended the session");
  CHECK(calls == 2);  // the last was not sent
  answers.Open();
  other.join();
  REQUIRE(slow.has_value());
  CHECK(slow->output == "done");
}

TEST_CASE("HttpChannel: a server that also answers a ping with 400 has forgotten the session", "[mcp]") {
  std::atomic<bool> restarted = false;
  McpHttpServer server([&](ScriptedConnection& connection, const ReceivedRequest& request, auto&) {
    if (!restarted || request.method != "POST") return false;
    connection.SendResponse("400 Bad Request", "application/json",
                            R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session ID"},"id":null})");
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "default");
  restarted = true;
  CHECK(client.Call() == "FAILED: the server has ended the session");
  REQUIRE(client.session.closed().has_value());
  CHECK(client.session.closed()->reason == "mcp_session_ended");
}

TEST_CASE("HttpChannel: a 400 to one request does not end a live session", "[mcp]") {
  McpHttpServer server([](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message)) return false;
    connection.SendResponse("400 Bad Request", "text/plain", "no");
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "FAILED: the server answered with HTTP status 400");
  CHECK(client.Call() == "FAILED: the server answered with HTTP status 400");
  CHECK(client.session.Request("ping", Json::object(), kLimits).has_value());
  CHECK_FALSE(client.session.closed().has_value());
}

TEST_CASE("HttpChannel: what a server says in a failed response is told, whatever the status", "[mcp]") {
  for (const char* status : {"400 Bad Request", "404 Not Found", "500 Internal Server Error"}) {
    for (const bool names_request : {true, false}) {
      INFO(status << names_request);
      if (!names_request && std::string_view(status).starts_with("404")) continue;  // an ended session
      McpHttpServer server([&](ScriptedConnection& connection, auto&, const Json& message) {
        if (!IsCall(message)) return false;
        const Json error = {{"code", -32602}, {"message", "bad arguments"}};
        const Json id = names_request ? message["id"] : Json();
        connection.SendResponse(status, "application/json",
                                DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"error", error}}));
        return true;
      });
      Client client(server.Url());
      REQUIRE(client.Greet().has_value());
      CHECK(client.Call() == "FAILED: the server reports: bad arguments (-32602)");
      CHECK(client.session.Request("ping", Json::object(), kLimits).has_value());
      CHECK_FALSE(client.session.closed().has_value());
    }
  }
}

TEST_CASE("HttpChannel: a stream is resumed in spite of passing failures", "[mcp]") {
  Json asked;
  std::atomic<int> refusals = 0;
  McpHttpServer server([&](ScriptedConnection& connection, const ReceivedRequest& request, const Json& message) {
    if (IsCall(message)) {
      asked = message;
      connection.SendHead("200 OK", "text/event-stream");
      connection.SendChunk("id: e-1\nretry: 50\ndata: \n\n");
      connection.SendLastChunk();
      return true;
    }
    if (request.method != "GET" || request.Header("last-event-id").empty()) return false;
    if (++refusals < 3) {
      connection.SendResponse(refusals == 1 ? "503 Service Unavailable" : "429 Too Many Requests", "text/plain", "");
    } else if (refusals == 3) {
      connection.Reset();
    } else {
      connection.SendHead("200 OK", "text/event-stream");
      connection.SendChunk(SseEvent(ResultFor(asked, TextResult("after all"))));
      connection.SendLastChunk();
    }
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "after all");
  CHECK(refusals == 4);
}

TEST_CASE("HttpChannel: a failed request does not affect others", "[mcp]") {
  std::string status = "500 Internal Server Error";
  McpHttpServer server([&](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message)) return false;
    connection.SendResponse(status, "text/html", "<h1>sorry</h1>");
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "FAILED: the server answered with HTTP status 500");
  status = "401 Unauthorized";
  CHECK(client.Call().find("wants authorization (HTTP status 401)") != std::string::npos);
  status = "200 OK";  // but still HTML
  CHECK(client.Call() == "FAILED: the server sent no answer (but text/html)");
  CHECK(client.session.Request("ping", Json::object(), kLimits).has_value());
}

TEST_CASE("HttpChannel: the server sends requests on its own stream, and gets answers", "[mcp]") {
  test::Gate answered;
  McpHttpServer server([&](ScriptedConnection& connection, const ReceivedRequest& request, const Json& message) {
    if (request.method == "GET") {
      connection.SendHead("200 OK", "text/event-stream");
      connection.SendChunk(SseEvent(R"({"jsonrpc":"2.0","id":"p","method":"ping"})"));
      connection.WaitForClose();
      return true;
    }
    if (message.value("id", Json()) != "p") return false;
    connection.Send("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    answered.Open();
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(answered.Wait());
}

TEST_CASE("HttpChannel: the server's own stream is opened again in spite of a passing failure", "[mcp]") {
  test::Gate reopened;
  std::atomic<int> opened = 0;
  McpHttpServer server([&](ScriptedConnection& connection, const ReceivedRequest& request, auto&) {
    if (request.method != "GET") return false;
    const int count = ++opened;
    if (count == 2) {
      connection.SendResponse("503 Service Unavailable", "text/plain", "");
      return true;
    }
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendChunk("retry: 50\n\n");
    connection.SendLastChunk();
    if (count > 2) reopened.Open();
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(reopened.Wait());
}

TEST_CASE("HttpChannel: a cancelled call ends its request and tells the server", "[mcp]") {
  std::stop_source stop;
  test::Gate told, left;
  McpHttpServer server([&](ScriptedConnection& connection, auto&, const Json& message) {
    if (IsCall(message)) {
      stop.request_stop();
      connection.WaitForClose();
      left.Open();
      return true;
    }
    if (message.is_object() && message.value("method", "") == "notifications/cancelled") told.Open();
    return false;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  RequestOptions options = kLimits;
  options.stop = stop.get_token();
  const auto outcome = CallTool(client.session, "tool", "{}", options);
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().code == ErrorCode::kCancelled);
  CHECK(told.Wait());
  CHECK(left.Wait());
}

TEST_CASE("HttpChannel: a message that is too long fails its call, and the session continues", "[mcp]") {
  for (const char* type : {"application/json", "text/event-stream"}) {
    INFO(type);
    std::atomic<bool> is_long = true;
    McpHttpServer server([&](ScriptedConnection& connection, auto&, const Json& message) {
      if (!IsCall(message) || !is_long) return false;
      connection.SendHead("200 OK", type);
      if (!connection.SendChunk("data: ")) return true;
      const std::string piece(1 << 20, 'x');
      for (int i = 0; i < 64 && connection.SendChunk(piece); ++i) {
      }
      return true;
    });
    Client client(server.Url());
    REQUIRE(client.Greet().has_value());
    CHECK(client.Call() ==
          "FAILED: the server's answer is larger than 16 MiB, the most that is taken; what was asked for may be done");
    is_long = false;
    CHECK(client.Call() == "default");
    CHECK_FALSE(client.session.closed().has_value());
  }
}

TEST_CASE("HttpChannel: content types of answers, and their endings, do not matter", "[mcp]") {
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"Application/JSON", "RESULT"},
      {"application/json;charset=UTF-8",
       "\xEF\xBB\xBF"
       "RESULT"},
      {"", "RESULT"},
      {"text/plain", "RESULT"},
      {"TEXT/Event-Stream; charset=utf-8", "data: RESULT\n\n"},
      {"text/event-stream", "\xEF\xBB\xBF:hello\r\nid\r\nretry: x\r\nfoo: bar\r\nevent: answer\r\ndata:RESULT\r\n\r\n"},
      {"text/event-stream", "data: RESULT"},
      {"text/event-stream",
       "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":ID,\ndata: \"result\":{\"content\":\"read\"}}\n\n"},
      {"application/json", R"([{"jsonrpc":"2.0","method":"notifications/message"},RESULT])"},
      {"application/json", R"({"jsonrpc":"2.0","id":null,"result":{"content":"read"}})"},
      {"application/json", R"({"jsonrpc":"2.0","id":"ID","result":"read"})"}};
  for (const auto& [type, answer] : answers) {
    INFO(type + " " + answer);
    McpHttpServer server([&, type = type, answer = answer](ScriptedConnection& connection, auto&, const Json& message) {
      if (!IsCall(message)) return false;
      std::string body = answer;
      const auto put = [&](const std::string& name, const std::string& by) {
        if (const std::size_t at = body.find(name); at != std::string::npos) body.replace(at, name.size(), by);
      };
      put("RESULT", ResultFor(message, TextResult("read")));
      put("ID", DumpJson(message["id"]));
      connection.Send("HTTP/1.1 200 OK\r\n" + (type.empty() ? "" : "Content-Type: " + type + "\r\n") +
                      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
      return true;
    });
    Client client(server.Url());
    REQUIRE(client.Greet().has_value());
    CHECK(client.Call() == "read");
  }
}

TEST_CASE("HttpChannel: redirects on the same origin keep method and body, others fail with the address", "[mcp]") {
  for (const int status : {301, 302, 307, 308}) {
    INFO(status);
    const std::string line = std::to_string(status) + " Moved";
    McpHttpServer server([&](ScriptedConnection& connection, const ReceivedRequest& request, const Json& message) {
      if (request.target == "/mcp") {
        connection.Send("HTTP/1.1 " + line +
                        "\r\nLocation: /mcp/\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n");
        return true;
      }
      if (request.target == "/mcp/" && IsCall(message)) {
        connection.Send("HTTP/1.1 307 Moved\r\nLocation: last?x=1\r\nContent-Length: 0\r\n\r\n");
        return true;
      }
      return false;
    });
    Client client(server.Url());
    REQUIRE(client.Greet().has_value());
    CHECK(client.Call() == "default");
    CHECK(client.Call() == "default");
    bool is_sent_on = false;
    for (const ReceivedRequest& request : server.requests()) {
      is_sent_on = is_sent_on || (request.target == "/mcp/last?x=1" && request.method == "POST" &&
                                  request.body.find("tools/call") != std::string::npos);
    }
    CHECK(is_sent_on);
  }
  ScriptedServer other([](ScriptedConnection& connection) { connection.SendResponse("200 OK", "text/plain", "mine"); });
  for (const std::string& elsewhere :
       {other.Url("/mcp"), std::string("//evil.test/mcp"), std::string("https://evil.test/a")}) {
    INFO(elsewhere);
    McpHttpServer server([&](ScriptedConnection& connection, auto&, const Json& message) {
      if (!IsCall(message)) return false;
      connection.Send("HTTP/1.1 308 Moved\r\nLocation: " + elsewhere + "\r\nContent-Length: 0\r\n\r\n");
      return true;
    });
    Client client(server.Url());
    REQUIRE(client.Greet().has_value());
    CHECK(client.Call() == "FAILED: the server sends its clients to " + elsewhere +
                               ", which is another server; if that is right, configure that address");
    CHECK_FALSE(client.session.closed().has_value());
  }
  McpHttpServer circle([](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message)) return false;
    connection.Send("HTTP/1.1 307 Moved\r\nLocation: /mcp\r\nContent-Length: 0\r\n\r\n");
    return true;
  });
  Client client(circle.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "FAILED: the server's redirects do not end; the last leads to /mcp");
}

TEST_CASE("HttpChannel: a broken connection fails only its call", "[mcp]") {
  McpHttpServer server([](ScriptedConnection& connection, auto&, const Json& message) {
    if (!IsCall(message) || message["params"]["name"] != "breaks") return false;
    connection.Reset();
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  const auto broken = CallTool(client.session, "breaks", "{}", kLimits);
  CHECK_FALSE(broken.has_value());
  CHECK(client.Call() == "default");
  CHECK_FALSE(client.session.closed().has_value());
}

TEST_CASE("HttpChannel: a server that sends requests without reading the answers keeps its session", "[mcp]") {
  McpHttpServer server([](ScriptedConnection& connection, const ReceivedRequest& request, const Json& message) {
    if (message.contains("result")) {
      connection.WaitForClose();
      return true;
    }
    if (!IsCall(message) || request.method != "POST") return false;
    connection.SendHead("200 OK", "text/event-stream");
    for (int i = 0; i < 1000; ++i) {
      connection.SendChunk(SseEvent(R"({"jsonrpc":"2.0","method":"ping","id":)" + std::to_string(i) + "}"));
    }
    connection.SendChunk(SseEvent(ResultFor(message, TextResult("after all"))));
    connection.SendLastChunk();
    return true;
  });
  Client client(server.Url());
  REQUIRE(client.Greet().has_value());
  CHECK(client.Call() == "after all");
  CHECK_FALSE(client.session.closed().has_value());
}

TEST_CASE("HttpChannel: a server that cannot be reached closes the channel", "[mcp]") {
  Client client("http://127.0.0.1:1/mcp");
  const auto facts = client.Greet();
  REQUIRE_FALSE(facts.has_value());
  CHECK(facts.error().message == "could not connect to the server");
  CHECK(client.session.closed().has_value());
}

TEST_CASE("HttpChannel: a server of 2024-11-05 is reached over its stream", "[mcp]") {
  for (const auto& [endpoint, works] : std::vector<std::pair<std::string, bool>>{
           {"/messages?session=1", true}, {"messages?session=1", true}, {"http://evil.test/messages", false}}) {
    INFO(endpoint);
    std::mutex mutex;
    ScriptedConnection* stream = nullptr;
    ScriptedServer server([&](ScriptedConnection& connection) {
      while (auto request = connection.ReadRequest()) {
        if (request->method == "GET") {
          connection.SendHead("200 OK", "text/event-stream");
          {
            const std::lock_guard lock(mutex);
            stream = &connection;
          }
          connection.SendChunk("event: endpoint\ndata: " + endpoint + "\n\n");
          connection.WaitForClose();
          return;
        }
        if (request->target == "/mcp") {
          connection.SendResponse("405 Method Not Allowed", "text/plain", "");
          continue;
        }
        const auto message = ParseJson(request->body);
        connection.SendResponse("202 Accepted", "text/plain", "Accepted");
        if (!message->contains("id")) continue;
        const Json result = (*message)["method"] == "initialize"
                                ? Json{{"protocolVersion", "2024-11-05"},
                                       {"capabilities", {{"tools", Json::object()}}},
                                       {"serverInfo", {{"name", "old"}, {"version", "0"}}}}
                                : TextResult("old answer");
        const std::lock_guard lock(mutex);
        stream->SendChunk("event: message\n" + SseEvent(ResultFor(*message, result)));
      }
    });
    Client client(server.Url("/mcp"));
    const auto facts = client.Greet();
    CHECK(facts.has_value() == works);
    if (works) CHECK(client.Call() == "old answer");
    if (!works) CHECK(facts.error().message == "the server's endpoint is on another server: " + endpoint);
  }
}

}  // namespace reprise::http_channel_test
