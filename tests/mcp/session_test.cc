#include "mcp/session.h"

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "mcp/client.h"
#include "stdio_fixture.h"

namespace reprise::session_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string OutputOf(const Result<ToolOutcome>& outcome) {
  return outcome ? outcome->output : "FAILED: " + outcome.error().message;
}

// Arguments for the server's tool "raw", which answers with this text.
std::string Raw(std::string_view line) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string hex;
  for (const char c : line) hex += {kHex[static_cast<unsigned char>(c) >> 4], kHex[c & 15]};
  return R"({"hex":")" + hex + R"("})";
}

milliseconds Since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
}

}  // namespace

TEST_CASE("Session: greets, lists all pages, calls", "[mcp]") {
  StdioSession server("plain");
  const auto facts = Initialize(server.session(), "1", StdioSession::Limits());
  REQUIRE(facts.has_value());
  CHECK(facts->name == "scripted");
  CHECK(facts->protocol == "2025-11-25");
  CHECK(facts->tools);
  CHECK_FALSE(facts->resources);
  const auto tools = ListTools(server.session(), StdioSession::Limits());
  REQUIRE(tools.has_value());
  REQUIRE(tools->size() == 18);
  CHECK(tools->front().name == "echo");
  CHECK(tools->front().read_only_hint);
  CHECK(tools->at(1).destructive_hint);
  CHECK(OutputOf(server.Call("echo", R"({"text":"hällo"})")) == "hällo");
}

TEST_CASE("Session: older versions are accepted, unknown ones are not", "[mcp]") {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18"}) {
    StdioSession server(ScriptedStdioServer("version", version));
    const auto facts = Initialize(server.session(), "1", StdioSession::Limits());
    REQUIRE(facts.has_value());
    CHECK(facts->protocol == version);
  }
  StdioSession server(ScriptedStdioServer("version", "1999-01-01"));
  const auto facts = Initialize(server.session(), "1", StdioSession::Limits());
  REQUIRE_FALSE(facts.has_value());
  CHECK(facts.error().message == "the server speaks another version of the protocol (1999-01-01)");
}

TEST_CASE("Session: a tool's failure is an outcome, the server's an error", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  const auto failed = server.Call("fail");
  REQUIRE(failed.has_value());
  CHECK(failed->is_error);
  CHECK(failed->output == "it went wrong");
  const auto refused = server.Call("refuse");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().reason == "mcp_error");
  CHECK(refused.error().message == "the server reports: not today (-32050)");
}

TEST_CASE("Session: a crash fails calls under way at once, with the exit status", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  Result<ToolOutcome> sleeping;
  std::thread other([&] { sleeping = server.Call("sleep"); });
  const auto began = std::chrono::steady_clock::now();
  const auto crashed = server.Call("crash");
  other.join();
  CHECK(Since(began) < seconds(1) * 5);  // of a limit of 30; the machine may be busy
  REQUIRE_FALSE(crashed.has_value());
  CHECK(crashed.error().message == "the server ended with exit status 7: last words");
  REQUIRE_FALSE(sleeping.has_value());
  CHECK(sleeping.error().message == crashed.error().message);
  CHECK(server.session().closed().has_value());
  CHECK(OutputOf(server.Call("echo", R"({"text":"x"})")) == "FAILED: " + crashed.error().message);
}

TEST_CASE("Session: progress reaches the call it belongs to", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  std::vector<std::string> progress;
  RequestOptions options = StdioSession::Limits();
  options.on_progress = [&](std::string_view text) { progress.emplace_back(text); };
  CHECK(OutputOf(server.Call("progress", "{}", options)) == "done");
  CHECK(progress == std::vector<std::string>{"step 1 (1/2)", "step 2 (2/2)"});
}

TEST_CASE("Session: a cancelled call returns at once and the server is told", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  std::stop_source stop;
  RequestOptions options = StdioSession::Limits();
  options.stop = stop.get_token();
  std::jthread cancel([&] { stop.request_stop(); });
  const auto began = std::chrono::steady_clock::now();
  const auto cancelled = server.Call("cancelled", "{}", options);
  CHECK(Since(began) < seconds(5));
  REQUIRE_FALSE(cancelled.has_value());
  CHECK(cancelled.error().code == ErrorCode::kCancelled);
  CHECK(OutputOf(server.Call("echo", R"({"text":"still here"})")) == "still here");
}

TEST_CASE("Session: a call that takes too long is given up", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  const auto late = server.Call("sleep", "{}", {.timeout = milliseconds(50)});
  REQUIRE_FALSE(late.has_value());
  CHECK(late.error().code == ErrorCode::kDeadlineExceeded);
  CHECK(OutputOf(server.Call("echo", R"({"text":"still here"})")) == "still here");
}

TEST_CASE("Session: a question is answered where the call waits, with defaults", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  RequestOptions options = StdioSession::Limits();
  ToolQuestion asked;
  ToolAnswer answer{.action = ToolAnswer::Action::kAccept, .content = R"({"name":"Ann","extra":1})"};
  options.ask = [&](const ToolQuestion& question, const std::stop_token&) {
    asked = question;
    return answer;
  };
  CHECK(OutputOf(server.Call("ask", "{}", options)) ==
        R"({"action": "accept", "content": {"name": "Ann", "age": 30}})");
  CHECK(asked.text == "Your name?");
  CHECK(asked.schema.find(R"("age")") != std::string::npos);
  answer.content = "{}";  // a required field is missing
  CHECK(OutputOf(server.Call("ask", "{}", options)) == R"({"action": "cancel"})");
  answer.action = ToolAnswer::Action::kDecline;
  CHECK(OutputOf(server.Call("ask", "{}", options)) == R"({"action": "decline"})");
  CHECK(OutputOf(server.Call("ask")) == R"({"action": "decline"})");  // no person can be asked
}

TEST_CASE("Session: a person's time does not count, and a cancelled run ends the question", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  std::stop_source stop;
  RequestOptions options{.timeout = seconds(30), .stop = stop.get_token()};
  bool over_seen = false;
  options.ask = [&](const ToolQuestion&, const std::stop_token& over) {
    stop.request_stop();
    over_seen = over.stop_requested();
    return ToolAnswer{};
  };
  // An existing result would win over the cancellation, so this server holds it back.
  const auto cancelled = server.Call("ask", R"({"ends_silent":true})", options);
  REQUIRE_FALSE(cancelled.has_value());
  CHECK(cancelled.error().code == ErrorCode::kCancelled);
  CHECK(over_seen);
}

TEST_CASE("Session: the server gets the roots, pings are answered, sampling is rejected", "[mcp]") {
  SessionHooks hooks;
  hooks.roots = {{.path = "/a b/ü", .name = "workspace"}};
  StdioSession server("plain", std::move(hooks));
  server.Greeted();
  CHECK(OutputOf(server.Call("roots")) ==
        R"([{"roots": [{"uri": "file:///a%20b/%C3%BC", "name": "workspace"}]}, {}, "error"])");
}

TEST_CASE("Session: wrong, repeated and odd ids are ignored", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  CHECK(OutputOf(server.Call("wrong_ids")) == "right");
  CHECK(OutputOf(server.Call("echo", R"({"text":"next"})")) == "next");
}

TEST_CASE("Session: an answer that cannot be read ends its call at once, and says why", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  const auto call = [&](const std::string& line) { return OutputOf(server.Call("raw", Raw(line))); };
  const std::string deep = std::string(600, '[') + std::string(600, ']');
  CHECK(call(R"({"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":)" + deep + "}}") ==
        "FAILED: the server's answer cannot be read: JSON nested deeper than 512 levels");
  CHECK(call(R"({"result":{"content":[],"id":7,"x":")" + std::string("\\\"{") + R"(","y":)" + deep + R"(}, "id" : ID})")
            .starts_with("FAILED: the server's answer cannot be read"));
  CHECK(call(R"({"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text")")
            .starts_with("FAILED: the server's answer cannot be read"));
  // An ambiguous answer, alone and in a batch.
  for (const bool batch : {false, true}) {
    std::string line = R"({"jsonrpc":"2.0","id":ID,"result":{"content":[]},"result":{"content":[1]}})";
    if (batch) line = "[7," + line + "]";
    CHECK(call(line).starts_with("FAILED: in the server's answer "));
  }
  // The call has taken effect, so repeated members do not lose its result.
  CHECK(call(R"({"jsonrpc":"2.0","id":ID,"result":{"content":"a","content":"b"}})") == "b");
  // Invalid UTF-8 is replaced, as everywhere.
  CHECK(call("{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xc3\"}]}}") ==
        "a\xEF\xBF\xBD");
  CHECK(OutputOf(server.Call("echo", R"({"text":"next"})")) == "next");
}

TEST_CASE("Session: real servers' deviations are accepted", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  const auto call = [&](const std::string& line) { return OutputOf(server.Call("raw", Raw(line))); };
  const auto result = [&](const std::string& json) {
    return call(R"({"jsonrpc":"2.0","id":ID,"result":)" + json + "}");
  };
  const auto structured = [&](const std::string& json) { return result(R"({"structuredContent":)" + json + "}"); };
  // Almost JSON.
  CHECK(structured(R"({"n":123456789012345678901234567890,"m":-98765432109876543210,"e":1e999})") ==
        R"({"n":"123456789012345678901234567890","m":"-98765432109876543210","e":"1e999"})");
  CHECK(structured(R"({"a":NaN,"b":[Infinity,-Infinity],"c":"NaN 1e999"})") ==
        R"({"a":null,"b":[null,null],"c":"NaN 1e999"})");
  CHECK(result(R"({"content":[{"type":"text","text":"x\ud800y\ude00z\ud83d\ude00"}]})") ==
        "x\xEF\xBF\xBDy\xEF\xBF\xBDz\xF0\x9F\x98\x80");
  CHECK(result("{\"content\":[{\"type\":\"text\",\"text\":\"tab\there\"}]}") == "tab\there");
  // Deeper than any schema or argument of ours, but no reason to lose what was done.
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  CHECK(structured(R"({"x":)" + deep + "}") == R"({"x":)" + deep + "}");
  // Failures said in other words.
  const auto is_error = [&](std::string_view said) {
    const std::string line =
        R"({"jsonrpc":"2.0","id":ID,"result":{"content":"x","isError":)" + std::string(said) + "}}";
    return server.Call("raw", Raw(line)).value().is_error;
  };
  for (const char* said : {"true", "1", "\"true\"", "\"yes\"", "{}"}) {
    CHECK(is_error(said) == true);
  }
  for (const char* said : {"false", "0", "null", "\"false\"", "\"\""}) {
    CHECK(is_error(said) == false);
  }
  // Over several lines.
  CHECK(call("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"result\": {\"content\": \"long\"}\n}") == "long");
  CHECK(call("{\nnot a message\n{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":\"good\"}}") == "good");
  CHECK(call("[\n {\"jsonrpc\":\"2.0\",\"method\":\"a\"},\n {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":"
             "{\"content\":\"long\"}}\n]") == "long");
  // A bracket alone that begins nothing.
  for (const char* bracket : {"{", "["}) {
    CHECK(call(bracket + std::string("\n { \"jsonrpc\": \"2.0\", \"id\": ID, \"result\": {\"content\": \"good\"} }")) ==
          "good");
  }
  // Around the message.
  const std::string good = R"({"jsonrpc":"2.0","id":ID,"result":{"content":"good"}})";
  CHECK(call("\xEF\xBB\xBF" + good) == "good");
  CHECK(call(good + "\r") == "good");
  CHECK(call("  " + good + "  ") == "good");
  CHECK(call("12:00 INFO {\"at\" done " + good) == "good");
  CHECK(call("[1,null,[]," + good + "]") == "good");
  CHECK(call("starting up\n\x1b[32mINFO\x1b[0m ready\n{}\n" + good) == "good");
  // Ids.
  CHECK(call(R"({"jsonrpc":"2.0","id":"ID","result":{"content":"good"}})") == "good");
  CHECK(call(R"({"result":{"content":"good"},"id":ID.0})") == "good");
  CHECK(call(R"({"jsonrpc":"2.0","id":null,"result":{"content":"of a notification"}})"
             "\n" +
             good) == "good");
  CHECK(call(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such notification"}})"
             "\n" +
             good) == "good");
  CHECK(call(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}})") ==
        "FAILED: the server reports: parse error (-32700)");
  // Results.
  CHECK(result(R"({"content":"plain"})") == "plain");
  CHECK(result(R"({"content":["a","b"]})") == "a\nb");
  CHECK(result(R"({"content":{"type":"text","text":"one"}})") == "one");
  CHECK(result(R"({"content":[{"text":"untyped"},{"type":"new","x":1}]})") == "untyped\n{\"type\":\"new\",\"x\":1}");
  CHECK(structured("[1,2]") == "[1,2]");
  CHECK(structured("7") == "7");
  CHECK(result(R"({"answer":42})") == R"({"answer":42})");
  CHECK(result(R"("bare")") == "bare");
  CHECK(result("[1]") == "1");
  CHECK(result("null") == "(no output)");
  CHECK(result("{}") == "(no output)");
  // Errors.
  const auto error = [&](const std::string& json) { return call(R"({"jsonrpc":"2.0","id":ID,"error":)" + json + "}"); };
  CHECK(error(R"({"code":-32602,"message":"bad","data":{"field":"x"}})") ==
        R"(FAILED: the server reports: bad (-32602): {"field":"x"})");
  CHECK(error(R"({"code":1,"message":"bad","data":"the file is locked"})") ==
        "FAILED: the server reports: bad (1): the file is locked");
  CHECK(error(R"("just words")") == "FAILED: the server reports: just words");
  CHECK(error("[]") == "FAILED: the server reports: []");
  CHECK(OutputOf(server.Call("echo", R"({"text":"next"})")) == "next");
}

TEST_CASE("Session: an answer that is too large fails its call, and the server keeps running", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  // Its id comes before the rest or, as many libraries write it, after it.
  for (const char* order : {"first", "last"}) {
    INFO(order);
    CHECK(OutputOf(server.Call("large", std::string(R"({"bytes":20000000,"id":")") + order + R"("})")) ==
          "FAILED: the server's answer is larger than 16 MiB, the most that is taken; what was asked for may be done");
  }
  CHECK(OutputOf(server.Call("large", R"({"bytes":5,"id":"first"})")) == "xxxxx");
  const auto picture = server.Call("large", R"({"bytes":15000000,"id":"last","type":"image"})");
  REQUIRE(picture.has_value());
  REQUIRE(picture->files.size() == 1);
  CHECK(picture->files.front().content.size() == 11250000);
  CHECK(OutputOf(server.Call("count")) == "4");  // the same process, with its state
}

TEST_CASE("Session: a call that needs a page opened first asks for it and is sent again", "[mcp]") {
  RequestOptions options = StdioSession::Limits();
  std::vector<ToolQuestion> asked;
  ToolAnswer answer{.action = ToolAnswer::Action::kAccept};
  options.ask = [&](const ToolQuestion& question, const std::stop_token&) {
    asked.push_back(question);
    return answer;
  };
  {
    StdioSession server("plain");
    server.Greeted();
    CHECK(OutputOf(server.Call("open_first", "{}", options)) == "opened, call 2");
    REQUIRE(asked.size() == 1);
    CHECK(asked.front().url == "https://login.example/x");
    CHECK(asked.front().text == "Log in");
  }
  const std::string refused =
      "FAILED: the user must open a page first and has not done so: https://login.example/x (Log in)";
  StdioSession server("plain");
  server.Greeted();
  CHECK(OutputOf(server.Call("open_first")) == refused);  // no person can be asked
  StdioSession other("plain");
  other.Greeted();
  answer.action = ToolAnswer::Action::kDecline;
  CHECK(OutputOf(other.Call("open_first", "{}", options)) == refused);
}

TEST_CASE("Session: garbage on stdout is ignored", "[mcp]") {
  StdioSession server("garbage");
  server.Greeted();
  CHECK(OutputOf(server.Call("echo", R"({"text":"x"})")) == "x");
}

TEST_CASE("Session: a server that floods is ended", "[mcp]") {
  // A machine that is too slow to detect the flood finally detects that its answers are not read.
  const RequestOptions patient{.timeout = std::chrono::minutes(5)};
  for (const char* mode : {"flood", "notices", "endless"}) {
    INFO(mode);
    StdioSession server(mode);
    const auto facts = Initialize(server.session(), "1", patient);
    if (facts) {
      const auto listed = ListTools(server.session(), patient);
      REQUIRE_FALSE(listed.has_value());
    }
    REQUIRE(server.session().closed().has_value());
    const std::string why = server.session().closed()->message;
    INFO(why);
    const bool said = why.find("floods") != std::string::npos || why.find("without an end") != std::string::npos ||
                      why.find("does not read") != std::string::npos;
    CHECK(said);
  }
}

TEST_CASE("Session: a flood of notifications before an answer does not lose the answer", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  for (int i = 0; i < 3; ++i) CHECK(OutputOf(server.Call("chatter")) == "done");
  CHECK_FALSE(server.session().closed().has_value());
}

TEST_CASE("Session: a request behind a flood gets an error and not silence", "[mcp]") {
  StdioSession server("plain");
  server.Greeted();
  CHECK(OutputOf(server.Call("chatter", R"({"asks":true})")) == "refused");
  CHECK_FALSE(server.session().closed().has_value());
}

TEST_CASE("Session: invalid tools are left out, long lists are cut, circles are detected", "[mcp]") {
  {
    StdioSession server("strange");
    const auto tools = ListTools(server.Greeted().session(), StdioSession::Limits());
    REQUIRE(tools.has_value());
    REQUIRE(tools->size() == 3);
    CHECK(tools->at(0).name == "no schema");
    CHECK(tools->at(0).input_schema == R"({"type":"object","properties":{}})");
    CHECK(tools->at(1).name == "good");
    CHECK(tools->at(2).name == "naïve tool/…");
  }
  {
    StdioSession server("many");
    const auto tools = ListTools(server.Greeted().session(), StdioSession::Limits());
    REQUIRE(tools.has_value());
    CHECK(tools->size() == kMaxMcpTools);
  }
  // The list consists of the pages so far, whatever follows.
  for (const char* mode : {"circle", "circle of two", "endless pages", "broken page", "numbered pages"}) {
    INFO(mode);
    StdioSession server(mode);
    const auto tools = ListTools(server.Greeted().session(), StdioSession::Limits());
    REQUIRE(tools.has_value());
    CHECK(tools->size() >= 2);
    CHECK(tools->front().name == "p0");
  }
}

TEST_CASE("Session: a command that does not start, or ends, says why", "[mcp]") {
  StdioSession server("exit");
  const auto facts = Initialize(server.session(), "1", StdioSession::Limits());
  REQUIRE_FALSE(facts.has_value());
  CHECK(facts.error().message == "the server ended with exit status 3: no configuration");

  CurlTransport transport;
  McpServerOptions missing = ScriptedStdioServer("plain");
  missing.command = "no-such-program";
  const auto channel = OpenServerChannel(missing, transport, "/", "");
  REQUIRE_FALSE(channel.has_value());
  CHECK(channel.error().message == "there is no program no-such-program");
}

TEST_CASE("Session: a server that ignores everything is killed within about a second", "[mcp]") {
  StdioSession server("deaf");
  const auto late = Initialize(server.session(), "1", {.timeout = milliseconds(200)});
  REQUIRE_FALSE(late.has_value());
  CHECK(late.error().code == ErrorCode::kDeadlineExceeded);
  const auto began = std::chrono::steady_clock::now();
  server.session().Close();
  CHECK(Since(began) < seconds(5));
}

TEST_CASE("Session: a server gets a clean environment, its own group and no descriptor", "[mcp]") {
  ::setenv("CANARY_SECRET_KEY", "secret", 1);
  McpServerOptions options = ScriptedStdioServer("plain");
  options.environment = {{"TOKEN", "configured"}};
  StdioSession server(options);
  const auto told = ParseJson(OutputOf(server.Greeted().Call("environment")));
  ::unsetenv("CANARY_SECRET_KEY");
  REQUIRE(told.has_value());
  const Json& environment = (*told)["environment"];
  CHECK(environment["TOKEN"] == "configured");
  CHECK(environment.contains("PATH"));
  CHECK_FALSE(environment.contains("CANARY_SECRET_KEY"));
  CHECK((*told)["descriptors"] == Json({"0", "1", "2", "3"}));  // 3 is the listed directory itself
  CHECK((*told)["directory"] == server.directory());
  CHECK((*told)["group"] == true);
}

TEST_CASE("Session: resources are listed and read", "[mcp]") {
  StdioSession server("more");
  Session& session = server.session();
  const RequestOptions limits = StdioSession::Limits();
  const auto facts = Initialize(session, "1", limits);
  REQUIRE(facts.has_value());
  CHECK(facts->resources);
  const auto resources = ListResources(session, limits);
  REQUIRE(resources.has_value());
  REQUIRE(resources->size() == 2);
  CHECK(resources->front().uri == "demo://1");
  CHECK(resources->front().type == "text/plain");
  const auto templates = ListResourceTemplates(session, limits);
  REQUIRE(templates.has_value());
  CHECK(templates->front().uri == "demo://{n}");
  CHECK(ReadResource(session, "demo://2", limits)->output == "[demo://2]\ntwo");
  CHECK_FALSE(ReadResource(session, "demo://9", limits).has_value());
}

TEST_CASE("Session: prompts and the server's log", "[mcp]") {
  std::promise<std::string> logged;
  SessionHooks hooks;
  hooks.on_log = [&](std::string_view level, std::string_view text) {
    logged.set_value(std::string(level) + " " + std::string(text));
  };
  StdioSession server("more", std::move(hooks));
  Session& session = server.Greeted().session();
  const RequestOptions limits = StdioSession::Limits();
  const auto prompts = ListPrompts(session, limits);
  REQUIRE(prompts.has_value());
  REQUIRE(prompts->size() == 1);
  CHECK(prompts->front().arguments == std::vector<std::pair<std::string, bool>>{{"who", true}});
  CHECK(GetPrompt(session, "greet", R"({"who":"Ann"})", limits) == "user: Hello Ann");
  CHECK(logged.get_future().get() == R"(info {"now":"greets"})");
}

}  // namespace reprise::session_test
