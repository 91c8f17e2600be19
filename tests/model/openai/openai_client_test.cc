#include "model/openai/openai_client.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "model/openai/openai_response.h"
#include "net/curl_transport.h"
#include "support/generate_and_wait.h"
#include "support/scripted_server.h"
#include "support/test.h"

namespace reprise::openai_client_test {
namespace {

using namespace std::chrono_literals;
using test::Gate;
using test::ScriptedConnection;
using test::ScriptedServer;

class RecordingStream : public ModelStream {
 public:
  void OnThinking(std::string_view delta) override { thinking_ += delta; }
  void OnText(std::string_view delta) override {
    const std::lock_guard lock(mutex_);
    text_ += delta;
    ++deltas_;
    empty_delta_ = empty_delta_ || delta.empty();
    changed_.notify_all();
  }
  void OnBatchEnd() override {
    const std::lock_guard lock(mutex_);
    ++batches_;
    changed_.notify_all();
  }
  void WaitForBatches(int batches) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return batches_ >= batches; });
  }
  void WaitForText(std::string_view text) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return text_ == text; });
  }
  const std::string& text() const { return text_; }
  const std::string& thinking() const { return thinking_; }
  int deltas() const { return deltas_; }
  int batches() const { return batches_; }
  bool empty_delta() const { return empty_delta_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_, thinking_;
  int deltas_ = 0, batches_ = 0;
  bool empty_delta_ = false;
};

const Messages& Hello() {
  static const Messages messages = [] {
    Message message;
    message.content = "hello";
    return Messages{message};
  }();
  return messages;
}
const std::vector<ToolSpec> kNoTools;

Result<ModelResponse> Generate(const ScriptedServer& server, ModelStream& stream, std::stop_token stop = {},
                               std::chrono::milliseconds idle_timeout = 10s) {
  CurlTransport transport;
  OpenAiClient client(transport,
                      {.base_url = server.Url("/v1/"), .api_key = "sk-test-1234567890", .idle_timeout = idle_timeout});
  return GenerateAndWait(client, {"gpt-test", Hello(), kNoTools}, stream, stop);
}

std::string Event(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }

std::string Delta(std::string_view delta, std::string_view finish = "null") {
  return Event(R"({"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":)" + std::string(delta) +
               R"(,"finish_reason":)" + std::string(finish) + "}]}");
}

const std::string kDone = "data: [DONE]\n\n";

// A server that answers one request with these bytes as an event stream, in pieces of `piece` bytes, and then closes.
ScriptedServer::Script Answers(std::string events, std::size_t piece = std::string::npos,
                               std::string content_type = "text/event-stream") {
  return [=](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Send("HTTP/1.1 200 OK\r\nContent-Type: " + content_type + "\r\n\r\n");
    for (std::size_t at = 0; at < events.size(); at += std::min(piece, events.size() - at)) {
      if (!connection.Send(std::string_view(events).substr(at, piece))) return;
    }
  };
}

struct Heard : ModelResponse {
  std::string text, thinking;  // what the stream got
};

Result<Heard> AnswerTo(std::string events) {
  ScriptedServer server(Answers(std::move(events)));
  RecordingStream stream;
  auto response = Generate(server, stream);
  if (!response) return Fail(response.error());
  CHECK_FALSE(stream.empty_delta());
  CHECK(IsUtf8(stream.text()));
  return Heard{{*std::move(response)}, stream.text(), stream.thinking()};
}

std::string ReasonFor(std::string events) {
  const auto response = AnswerTo(std::move(events));
  return response ? "ok: " + response->text : response.error().reason;
}

TEST_CASE("OpenAiClient: sends the request as agreed", "[openai]") {
  std::optional<test::ReceivedRequest> received;
  ScriptedServer server([&](ScriptedConnection& connection) {
    received = connection.ReadRequest();
    connection.SendResponse("200 OK", "text/event-stream", Delta(R"({"content":"x"})", R"("stop")") + kDone);
  });
  RecordingStream stream;
  REQUIRE(Generate(server, stream));
  REQUIRE(received);
  CHECK(received->method == "POST");
  CHECK(received->target == "/v1/chat/completions");
  CHECK(received->Header("authorization") == "Bearer sk-test-1234567890");
  CHECK(received->Header("content-type") == "application/json");
  const auto body = ParseJson(received->body);
  REQUIRE(body);
  CHECK((*body)["model"] == "gpt-test");
  CHECK((*body)["messages"][0]["content"] == "hello");
}

TEST_CASE("OpenAiClient: text, thinking and usage are collected, empty deltas are not passed on", "[openai]") {
  const auto response = AnswerTo(
      Delta(R"({"role":"assistant","content":""})") + ": ping\n\n" + Delta(R"({"reasoning_content":"let me "})") +
      Delta(R"({"reasoning":"see","reasoning_content":"see"})") + Delta(R"({"content":"Hel"})") +
      Delta(R"({"content":"lo \u00e9"})") + Delta(R"({"content":null,"refusal":" no"})") + Delta("{}", R"("stop")") +
      Event(
          R"({"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":5}}})") +
      kDone);
  REQUIRE(response);
  CHECK(response->text == "Hello \xC3\xA9 no");
  CHECK(response->thinking == "let me see");
  CHECK(response->usage == TokenUsage{12, 3, 5});
  CHECK(response->tool_calls.empty());
  CHECK(response->extras ==
        R"({"provider_extras":{"":{"message":{"reasoning_content":"let me see","reasoning":"see"}}}})");
}

TEST_CASE("OpenAiClient: the same however the bytes are cut", "[openai]") {
  const std::string events =
      "\xEF\xBB\xBF" + Delta(R"({"content":"a\u00e9"})") + ": ping\r\n\r\n" +
      Delta(R"({"tool_calls":[{"index":0,"id":"call_1","function":{"name":"echo","arguments":"{\"te"}}]})") +
      Delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"xt\":1}"}}]})", R"("tool_calls")") + kDone;
  for (const std::size_t piece : {1, 2, 3, 7, 64, 1000}) {
    ScriptedServer server(Answers(events, piece));
    RecordingStream stream;
    const auto response = Generate(server, stream);
    REQUIRE(response);
    CHECK(stream.text() == "a\xC3\xA9");
    CHECK(response->tool_calls == std::vector<ToolCall>{{"call_1", "echo", "{\"text\":1}"}});
  }
}

TEST_CASE("OpenAiClient: the first text arrives while the model still writes", "[openai]") {
  Gate seen;
  ScriptedServer server([&](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendChunk(Delta(R"({"content":"first"})"));
    if (!seen.Wait(connection.stop())) return;
    connection.SendChunk(Delta(R"({"content":" second"})", R"("stop")") + kDone);
    connection.SendLastChunk();
  });
  RecordingStream stream;
  std::jthread reader([&] {
    stream.WaitForBatches(1);
    seen.Open();
  });
  const auto response = Generate(server, stream);
  REQUIRE(response);
  CHECK(stream.text() == "first second");
  CHECK(stream.deltas() == 2);
  CHECK(stream.batches() == 2);
}

TEST_CASE("OpenAiClient: returns at [DONE] even if the server keeps the response open", "[openai]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendChunk(Delta(R"({"content":"x"})", R"("stop")") + kDone);
    connection.WaitForClose();
  });
  RecordingStream stream;
  CHECK(Generate(server, stream));
}

TEST_CASE("OpenAiClient: turns share a connection", "[openai]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    while (connection.ReadRequest()) {
      // In one piece, because an end of the response after [DONE] might arrive after the next turn has begun.
      connection.SendResponse("200 OK", "text/event-stream", Delta(R"({"content":"x"})", R"("stop")") + kDone);
    }
  });
  CurlTransport transport;
  OpenAiClient client(transport, {.base_url = server.Url("/v1")});
  RecordingStream stream;
  for (int i = 0; i < 10; ++i) REQUIRE(GenerateAndWait(client, {"m", Hello(), kNoTools}, stream, {}));
  CHECK(server.connections() == 1);
}

TEST_CASE("OpenAiClient: tool calls come whole, in pieces, without ids and as objects", "[openai]") {
  const auto response = AnswerTo(
      Delta(R"({"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"echo","arguments":""}},)"
            R"({"index":1,"function":{"name":"time","arguments":{"zone":"UTC"}}}]})") +
      Delta(R"({"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{}"}}]})") +
      Delta("{}", R"("tool_calls")") + kDone);
  REQUIRE(response);
  REQUIRE(response->tool_calls.size() == 2);
  CHECK(response->tool_calls[0] == ToolCall{"a", "echo", "{}"});
  CHECK(response->tool_calls[1].name == "time");
  CHECK(response->tool_calls[1].arguments == R"({"zone":"UTC"})");
  CHECK(response->tool_calls[1].id.starts_with("call_"));
}

TEST_CASE("OpenAiClient: the events that end a stream", "[openai]") {
  const std::string text = Delta(R"({"content":"x"})");
  CHECK(ReasonFor(text + kDone) == "ok: x");
  CHECK(ReasonFor(text + "data: [DONE]") == "ok: x");
  CHECK(ReasonFor(text + Delta("{}", R"("stop")")) == "ok: x");
  CHECK(ReasonFor(text + Delta("{}", R"("length")") + kDone) == "ok: x");
  const std::string last = Delta(R"({"content":"y"})", R"("stop")");
  CHECK(ReasonFor(text + last.substr(0, last.size() - 2)) == "ok: xy");
  CHECK(ReasonFor(text + last.substr(0, last.size() - 5)) == "provider_protocol");
  CHECK(ReasonFor(text) == "provider_protocol");
  CHECK(ReasonFor("") == "provider_protocol");
}

TEST_CASE("OpenAiClient: half of a tool call is never returned", "[openai]") {
  const std::string half =
      Delta(R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"run_shell","arguments":"{\"command\":\"rm"}}]})");
  CHECK(ReasonFor(half) == "provider_protocol");
  CHECK(ReasonFor(half + kDone) == "provider_protocol");
  CHECK(ReasonFor(half + Delta("{}", R"("length")") + kDone) == "provider_output_limit");
  const std::string whole =
      Delta(R"({"tool_calls":[{"index":1,"id":"b","function":{"name":"time","arguments":"{}"}}]})");
  CHECK(AnswerTo(whole + Delta("{}", R"("length")") + kDone)->tool_calls.size() == 1);
  CHECK(ReasonFor(whole + half + Delta("{}", R"("length")") + kDone) == "provider_output_limit");
  CHECK(ReasonFor(whole + Delta("{}", R"("content_filter")") + kDone) == "provider_bad_request");
  const auto wrong =
      AnswerTo(half + Delta("{}", R"("tool_calls")") + kDone);  // the model's own mistake, reported by the agent
  REQUIRE(wrong);
  CHECK(wrong->tool_calls[0].arguments == "{\"command\":\"rm");
}

TEST_CASE("OpenAiClient: a lost connection differs from an end", "[openai]") {
  for (const bool after_finish : {false, true}) {
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.SendHead("200 OK", "text/event-stream");
      connection.SendChunk(Delta(R"({"content":"x"})", after_finish ? R"("stop")" : "null"));
    });
    RecordingStream stream;
    const auto response = Generate(server, stream);
    CHECK(response.has_value() == after_finish);
    if (!response) {
      CHECK(response.error().code == ErrorCode::kProvider);
      CHECK(response.error().reason == "provider_protocol");
      CHECK(response.error().retryable);
    }
    CHECK(stream.text() == "x");
  }
}

TEST_CASE("OpenAiClient: nonsense is a protocol error", "[openai]") {
  CHECK(ReasonFor(Event("{not json")) == "provider_protocol");
  CHECK(ReasonFor(Event("[1,2]")) == "provider_protocol");
  CHECK(ReasonFor(Event(std::string(100, '[') + std::string(100, ']'))) == "provider_protocol");
  std::string deep = R"({"x":)";
  for (int i = 0; i < 100; ++i) deep += R"({"x":)";
  CHECK(ReasonFor(Event(deep + "1" + std::string(101, '}')) + kDone) == "provider_protocol");
  CHECK(ReasonFor("<html><body>hello</body></html>") == "provider_protocol");
  CHECK(ReasonFor("data: " + std::string(17 << 20, 'x')) == "response_too_large");
  CHECK(ReasonFor(Delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})", R"("tool_calls")") + kDone) ==
        "provider_protocol");
}

TEST_CASE("OpenAiClient: null and unknown members are ignored", "[openai]") {
  CHECK(ReasonFor(Event(R"({"choices":null})") +
                  Event(R"({"choices":[1,null,{"delta":null},{"index":1,"delta":{"content":"no"}}]})") +
                  Event(R"({"usage":null,"error":null,"other":[]})") +
                  Delta(R"({"content":null,"tool_calls":null,"reasoning":{},"extra":[[]]})") +
                  Delta(R"({"content":[{"type":"text","text":"ok"},{"x":1},2]})", R"("stop")") + kDone) == "ok: ok");
}

TEST_CASE("OpenAiClient: members of a wrong type are a protocol error, not an empty answer", "[openai]") {
  CHECK(ReasonFor(Event(R"({"choices":"x"})") + kDone) == "provider_protocol");
  CHECK(ReasonFor(Event(R"({"choices":[{"delta":5}]})") + kDone) == "provider_protocol");
  CHECK(ReasonFor(Delta(R"({"content":5})") + kDone) == "provider_protocol");
  CHECK(ReasonFor(Delta(R"({"tool_calls":7})") + kDone) == "provider_protocol");
}

TEST_CASE("OpenAiClient: invalid UTF-8 and lone surrogates become U+FFFD", "[openai]") {
  CHECK(ReasonFor(Delta("{\"content\":\"a\xff\"}") + Delta(R"({"content":"b\ud800"})") +
                  Delta(R"({"content":"c\udc00d"})") + Delta(R"({"content":"\ud83d\ude00"})", R"("stop")") + kDone) ==
        "ok: a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD"
        "c\xEF\xBF\xBD"
        "d\xF0\x9F\x98\x80");
}

TEST_CASE("OpenAiClient: an error inside the stream is mapped", "[openai]") {
  CHECK(ReasonFor(Event(R"({"error":{"message":"slow down","code":429}})")) == "provider_rate_limited");
  CHECK(ReasonFor(Delta(R"({"content":"x"})") +
                  Event(R"({"error":{"message":"m","type":"overloaded_error","code":null}})")) ==
        "provider_overloaded");
  CHECK(ReasonFor(Event(R"({"error":"plain words"})")) == "provider_error");
  CHECK(ReasonFor(Event("{\"error\":{\"code\":\"context_length_exceeded\"}}")) == "provider_context_length");
  CHECK(ReasonFor(Delta("{}", R"("error")") + kDone) == "provider_error");
}

TEST_CASE("OpenAiClient: answers that are not streams", "[openai]") {
  std::optional<RecordingStream> said;
  const auto answer = [&](std::string status, std::string type, std::string body) {
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.SendResponse(status, type, body);
    });
    said.emplace();
    return Generate(server, *said);
  };
  const auto document = answer(
      "200 OK", "application/json; charset=utf-8",
      R"({"choices":[{"index":0,"message":{"role":"assistant","content":"whole",)"
      R"("tool_calls":[{"id":"a","function":{"name":"echo","arguments":"{}"}},{"id":"b","function":{"name":"echo","arguments":"{}"}}]},)"
      R"("finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}})");
  REQUIRE(document);
  CHECK(said->text() == "whole");
  CHECK(document->tool_calls.size() == 2);
  CHECK(document->usage == TokenUsage{1, 2});

  const auto reason = [&](std::string status, std::string type, std::string body) {
    const auto response = answer(std::move(status), std::move(type), std::move(body));
    return response ? std::string("ok") : response.error().reason;
  };
  CHECK(reason("200 OK", "text/html", "<html>log in</html>") == "provider_protocol");
  CHECK(reason("200 OK", "application/json", "{") == "provider_protocol");
  CHECK(reason("200 OK", "application/json", "{}") == "provider_protocol");
  CHECK(reason("200 OK", "application/json", R"({"error":{"code":401,"message":"x"}})") == "provider_auth");
  CHECK(reason("401 Unauthorized", "application/json", R"({"error":{"message":"bad key"}})") == "provider_auth");
  CHECK(reason("404 Not Found", "text/plain", "nope") == "provider_not_found");
  CHECK(reason("429 Too Many Requests", "application/json", "{}") == "provider_rate_limited");
  CHECK(reason("400 Bad Request", "application/json",
               R"({"error":{"code":"context_length_exceeded","message":"x"}})") == "provider_context_length");
  CHECK(reason("503 Service Unavailable", "text/html", "<html>") == "provider_overloaded");
  CHECK(reason("500 Internal Server Error", "text/html", std::string(200000, 'x')) == "provider_error");
  CHECK(reason("307 Temporary Redirect", "text/html", "x") == "provider_bad_request");
}

TEST_CASE("OpenAiClient: an error body is quoted without the key", "[openai]") {
  for (const char* body : {R"({"error":{"message":"Incorrect API key provided: sk-test-1234567890."}})",
                           R"({"error":"key sk-test-******7890 is wrong"})", R"({"message":"sk-test-1234567890"})",
                           R"({"detail":"sk-test-1234567890"})"}) {
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.SendResponse("401 Unauthorized", "application/json", body);
    });
    RecordingStream stream;
    const auto response = Generate(server, stream);
    REQUIRE_FALSE(response);
    const Error& error = response.error();
    INFO(error.message);
    CHECK(error.message.find("[redacted]") != std::string::npos);
    for (const std::string& text : {error.message, error.detail, error.details_json}) {
      CHECK(text.find("sk-test") == std::string::npos);
      CHECK(text.find("7890") == std::string::npos);
    }
  }
}

TEST_CASE("OpenAiClient: a redirect is told with its address, without a password", "[openai]") {
  const std::pair<std::string, std::string> locations[] = {
      {"https://ann:secret@b.test/v2/chat/completions", "https://b.test/v2"},
      {"/login?next=a@b", "/login?next=a@b"},
      {"//b.test/v2?x=//y@z", "//b.test/v2?x=//y@z"}};
  for (const auto& [location, told] : locations) {
    ScriptedServer server([location = location](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.Send("HTTP/1.1 307 Moved\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n");
    });
    RecordingStream stream;
    const auto response = Generate(server, stream);
    REQUIRE_FALSE(response);
    CHECK(response.error().message == "The model provider's address is elsewhere (redirect) (HTTP 307): to " + told +
                                          "; set base_url to it if that is right");
    CHECK_FALSE(response.error().retryable);
  }
}

TEST_CASE("OpenAiClient: a provider that cannot be reached", "[openai]") {
  std::string url;
  {
    ScriptedServer gone([](ScriptedConnection&) {});
    url = gone.Url("/v1");
  }
  CurlTransport transport;
  OpenAiClient client(transport, {.base_url = url});
  RecordingStream stream;
  const auto response = GenerateAndWait(client, {"m", Hello(), kNoTools}, stream, {});
  REQUIRE_FALSE(response);
  CHECK(response.error().code == ErrorCode::kUnavailable);
  CHECK(response.error().reason == "provider_unreachable");
  CHECK(response.error().retryable);
}

TEST_CASE("OpenAiClient: pings do not keep a silent model alive", "[openai]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendChunk(Delta(R"({"content":"x"})"));
    std::mutex mutex;
    std::condition_variable_any pause;
    const std::stop_token stop = connection.stop();
    while (connection.SendChunk(": ping\n\n")) {
      std::unique_lock lock(mutex);
      if (pause.wait_for(lock, stop, 20ms, [&] { return stop.stop_requested(); })) return;
    }
  });
  RecordingStream stream;
  const auto start = std::chrono::steady_clock::now();
  const auto response = Generate(server, stream, {}, 200ms);
  const auto took = std::chrono::steady_clock::now() - start;
  REQUIRE_FALSE(response);
  CHECK(response.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(response.error().reason == "provider_timeout");
  CHECK(took >= 200ms);
  CHECK(took < 20s);
}

TEST_CASE("OpenAiClient: a model that falls silent is given up", "[openai]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendChunk(Delta(R"({"content":"x"})"));
    connection.WaitForClose();
  });
  RecordingStream stream;
  const auto response = Generate(server, stream, {}, 150ms);
  REQUIRE_FALSE(response);
  CHECK(response.error().reason == "provider_timeout");
  CHECK(response.error().retryable);
}

TEST_CASE("OpenAiClient: cancelled while the model is silent", "[openai]") {
  ScriptedServer server([](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.SendHead("200 OK", "text/event-stream");
    connection.SendChunk(Delta(R"({"content":"x"})"));
    connection.WaitForClose();
  });
  RecordingStream stream;
  std::stop_source source;
  std::jthread canceller([&] {
    stream.WaitForText("x");
    source.request_stop();
  });
  const auto response = Generate(server, stream, source.get_token());
  REQUIRE_FALSE(response);
  CHECK(response.error().code == ErrorCode::kCancelled);
}

TEST_CASE("OpenAiResponse: text beyond the limit is rejected", "[openai]") {
  RecordingStream stream;
  OpenAiResponse response(stream, {});
  const std::string event = R"({"choices":[{"index":0,"delta":{"content":")" + std::string(3 << 20, 'x') + R"("}}]})";
  int accepted = 0;
  while (accepted < 100 && response.TakeEvent(event)) ++accepted;
  CHECK(accepted == 2);  // 8 MiB
  CHECK(response.Take().error().reason == "response_too_large");
}

Result<ModelResponse> Taken(const std::vector<std::string>& deltas, std::string_view finish = "stop") {
  RecordingStream stream;
  OpenAiResponse response(stream, {.provider = "deepseek"});
  response.TakeEvent(R"({"choices":[{"index":0,"delta":{"content":"said"}}]})");  // so that the answer is not empty
  for (const std::string& delta : deltas) {
    if (!response.TakeEvent(R"({"choices":[{"index":0,"delta":)" + delta + "}]}")) break;
  }
  response.TakeEvent(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + std::string(finish) + R"("}]})");
  return response.Take();
}

Json KeptOf(const std::vector<std::string>& deltas) {
  const auto response = Taken(deltas);
  REQUIRE(response);
  if (response->extras.empty()) return {};
  const Json extras = Json::parse(response->extras);
  CHECK(extras.size() == 1);
  return extras.at("provider_extras").at("deepseek");
}

TEST_CASE("OpenAiResponse: unknown members are joined from their pieces and kept for the provider", "[openai]") {
  CHECK(KeptOf({R"({"role":"assistant","reasoning_content":"I "})", R"({"reasoning_content":"think","content":""})",
                R"({"reasoning_content":null,"content":"yes"})"}) ==
        Json::parse(R"({"message":{"reasoning_content":"I think"}})"));
  // Pieces of a block share its index; its signature comes at the end. A piece without index, or with another id, is
  // separate.
  CHECK(KeptOf({R"({"reasoning_details":[]})",
                R"({"reasoning_details":[{"type":"reasoning.text","text":"a","format":"f","index":0}]})",
                R"({"reasoning_details":[{"type":"reasoning.text","text":"b","format":"f","index":0}]})",
                R"({"reasoning_details":[{"type":"reasoning.text","signature":"S","format":"f","index":0}]})",
                R"({"reasoning_details":[{"type":"reasoning.encrypted","data":"x","id":"1","index":0},)"
                R"({"type":"reasoning.encrypted","data":"y","id":"2","index":0},{"n":1},{"n":1}]})"}) ==
        Json::parse(R"({"message":{"reasoning_details":[
          {"type":"reasoning.text","text":"ab","format":"f","index":0,"signature":"S"},
          {"type":"reasoning.encrypted","data":"x","id":"1","index":0},
          {"type":"reasoning.encrypted","data":"y","id":"2","index":0},{"n":1},{"n":1}]}})"));
  CHECK(KeptOf({R"({"other":{"a":"x","n":1,"deep":{"b":true}}})", R"({"other":{"a":"y","n":2,"deep":{"c":[1]}}})"}) ==
        Json::parse(R"({"message":{"other":{"a":"xy","n":2,"deep":{"b":true,"c":[1]}}}})"));
  // A repeated name in an object is kept once, because the message would be unreadable otherwise.
  CHECK(KeptOf({R"({"other":{"a":1,"a":2}})"}) == Json::parse(R"({"message":{"other":{"a":2}}})"));
}

TEST_CASE("OpenAiResponse: members of tool calls are kept by the call's id", "[openai]") {
  const Json kept = KeptOf(
      {R"({"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"echo","arguments":""},)"
       R"("extra_content":{"google":{"thought_signature":"S"}}}]})",
       R"({"tool_calls":[{"index":1,"id":"b","function":{"name":"time","arguments":"{}","mode":"x"}}]})",
       R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"},"extra_content":{"google":{"thought_signature":"S"}}}]})"});
  CHECK(kept == Json::parse(R"({"tool_calls":{"a":{"extra_content":{"google":{"thought_signature":"S"}}},
                                              "b":{"function":{"mode":"x"}}}})"));
}

TEST_CASE("OpenAiResponse: members that describe only the response are not kept", "[openai]") {
  CHECK(
      KeptOf({R"({"role":"assistant","content":"x","refusal":null,"annotations":[{}],"audio":{"id":"1"},"name":"n",)"
              R"("function_call":{"name":"f"},"logprobs":{},"index":0,"finish_reason":"stop","id":"1","usage":{},)"
              R"("tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"echo","arguments":"{}"}}]})"})
          .is_null());
}

TEST_CASE("OpenAiResponse: all output counts towards the limit", "[openai]") {
  const std::string three(3 << 20, 'x');
  const std::string call =
      R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":")" + three + R"("}}]})";
  const std::string thought = R"({"reasoning":")" + three + R"("})", kept = R"({"kept":{"a":[")" + three + R"("]}})";
  CHECK(Taken({thought, kept, call}).error().reason == "response_too_large");
  CHECK(Taken({kept, kept, kept}).error().reason == "response_too_large");
  CHECK(Taken({thought, kept}).has_value());
  std::string members;  // an object that is expensive to search
  for (int i = 0; i < 300; ++i) members += (i ? ",\"m" : "\"m") + std::to_string(i) + "\":0";
  CHECK(Taken({R"({"kept":{)" + members + "}}"}).error().reason == "response_too_large");
}

TEST_CASE("OpenAiResponse: an answer that was cut off says why", "[openai]") {
  for (const auto& [finish, truncated] :
       {std::pair("length", "length"), std::pair("content_filter", "content_filter"),
        std::pair("model_length", "context_window"), std::pair("stop", ""), std::pair("eos", "")}) {
    INFO(finish);
    const auto response = Taken({R"({"content":"half a sen"})"}, finish);
    REQUIRE(response);
    CHECK(response->truncated == truncated);
  }
  CHECK(Taken({R"({"content":"x"})"}, "insufficient_system_resource").error().reason == "provider_overloaded");
  for (const char* arguments : {R"({\"path\":)", ""}) {
    INFO(arguments);
    const auto cut = Taken({R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"write_file","arguments":")" +
                            std::string(arguments) + R"("}}]})"},
                           "length");
    REQUIRE_FALSE(cut);
    CHECK(cut.error().reason == "provider_output_limit");
    CHECK(cut.error().message.find("max_output_tokens") != std::string::npos);
  }
}

TEST_CASE("OpenAiResponse: empty pieces are no progress", "[openai]") {
  RecordingStream stream;
  OpenAiResponse response(stream, {});
  const auto progresses = [&](const std::string& choice) {
    response.TakeEvent(R"({"choices":[)" + choice + R"(],"usage":null})");
    return response.TakeProgress();
  };
  CHECK_FALSE(progresses(R"({"index":0,"delta":{"role":"assistant","content":""}})"));
  CHECK_FALSE(progresses(R"({"index":0,"delta":{"content":null,"reasoning_content":null,"reasoning_details":[]}})"));
  CHECK_FALSE(progresses(""));
  CHECK(progresses(R"({"index":0,"delta":{"content":"x"}})"));
  CHECK_FALSE(progresses(R"({"index":1,"delta":{"content":"another choice"}})"));
  CHECK(progresses(R"({"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{"}}]}})"));
  CHECK(progresses(R"({"index":0,"delta":{},"finish_reason":"stop"})"));
}

// Processor time of the calling thread, or of the whole process, so that a busy machine does not matter.
double CpuNanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

TEST_CASE("OpenAiClient: cost of a text delta", "[.bench]") {
  const std::string event =
      Event(R"({"id":"chatcmpl-9x8y7z","object":"chat.completion.chunk","created":1730000000,"model":"gpt-4o-mini",)"
            R"("choices":[{"index":0,"delta":{"content":" hello world"},"logprobs":null,"finish_reason":null}]})");
  struct NullStream : ModelStream {
    void OnThinking(std::string_view) override {}
    void OnText(std::string_view) override {}
    void OnBatchEnd() override {}
  } stream;
  constexpr int kEvents = 1'000'000;
  {
    OpenAiResponse response(stream, {});
    const std::string_view data = std::string_view(event).substr(6, event.size() - 8);
    const double start = CpuNanoseconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < kEvents; ++i) response.TakeEvent(data);
    const double took = CpuNanoseconds(CLOCK_THREAD_CPUTIME_ID) - start;
    WARN("decoding: " << took / kEvents << " ns per event of " << data.size() << " bytes");
  }
  for (const int per_chunk : {1, 64}) {
    ScriptedServer server([&](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.SendHead("200 OK", "text/event-stream");
      std::string piece, block;
      for (int i = 0; i < per_chunk; ++i) piece += event;
      char size[24];
      const int n = std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
      while (block.size() < 256 * 1024) block += std::string(size, static_cast<std::size_t>(n)) + piece + "\r\n";
      const std::size_t per_block =
          block.size() / (piece.size() + static_cast<std::size_t>(n) + 2) * static_cast<std::size_t>(per_chunk);
      for (std::size_t sent = 0; sent < kEvents; sent += per_block) connection.Send(block);
      connection.SendChunk(Delta("{}", R"("stop")") + kDone);
      connection.SendLastChunk();
    });
    const double cpu = CpuNanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    const auto start = std::chrono::steady_clock::now();
    const auto response = Generate(server, stream);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    REQUIRE(response);
    WARN("processor time of client and server: " << (CpuNanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / kEvents
                                                 << " ns");
    WARN("end to end, " << per_chunk << " events per HTTP chunk: " << took.count() / kEvents << " ns per event");
  }
}

}  // namespace
}  // namespace reprise::openai_client_test
