#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "server_fixture.h"

namespace reprise::api_test {

using namespace std::chrono_literals;

namespace {

Json Parse(const std::string& text) {
  auto json = ParseJson(text);
  REQUIRE(json);
  return *std::move(json);
}
Json Body(const TestResponse& response) { return Parse(response.body); }
std::string CodeOf(const TestResponse& response) { return Body(response)["error"]["code"]; }

struct Frame {
  std::string id, name;
  Json data;
};
std::vector<Frame> Frames(std::string_view text) {
  std::vector<Frame> frames;
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    REQUIRE(end != std::string_view::npos);
    std::string_view frame = text.substr(0, end);
    text.remove_prefix(end + 2);
    Frame read;
    while (!frame.empty()) {
      const std::string line(frame.substr(0, frame.find('\n')));
      frame.remove_prefix(std::min(line.size() + 1, frame.size()));
      if (line.starts_with("id: ")) read.id = line.substr(4);
      if (line.starts_with("event: ")) read.name = line.substr(7);
      if (line.starts_with("data: ")) read.data = Parse(line.substr(6));
    }
    if (!read.name.empty()) frames.push_back(std::move(read));
  }
  return frames;
}
std::vector<std::string> Names(std::string_view text) {
  std::vector<std::string> names;
  for (const Frame& frame : Frames(text)) names.push_back(frame.name);
  return names;
}
std::string FieldOf(std::string_view text, std::string_view event, const char* field) {
  for (const Frame& frame : Frames(text)) {
    if (frame.name == event) return frame.data[field];
  }
  return {};
}

TestClient StartOn(ServerFixture& f, std::string_view chat, std::string_view body = R"({"user_message":"hi"})") {
  TestClient client(f.port);
  client.Send(RequestText(f.port, "POST", "/chats/" + std::string(chat) + "/interactions", body));
  client.ReadUntil("\r\n\r\n");
  return client;
}
void ThenDanger(ScriptedModel& model) { model.ThenCall({ToolCall{"call_1", "danger", R"({"x":1})"}}); }

// A model that is silent until it is stopped, and reports when it was asked and stopped. (The test cannot watch the
// interaction itself, because a watched interaction is not abandoned.)
struct Hang {
  explicit Hang(ScriptedModel& model) {
    model.Then([this](const auto&, ModelStream&, std::stop_token stop) -> Result<ModelResponse> {
      asked.set_value();
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any().wait(lock, stop, [] { return false; });
      stopped.set_value();
      return Fail(ErrorCode::kCancelled, "stopped");
    });
  }
  std::promise<void> asked, stopped;
};

// Waits until the interaction has ended and returns its status.
std::string AwaitStatus(ServerFixture& f, const std::string& path) {
  TestClient client(f.port);
  client.Send(RequestText(f.port, "GET", path + "/events", {}, "Accept: text/event-stream\r\n"));
  const std::string events = client.ReadResponse().body;
  return FieldOf(events, "interaction_complete", "status");
}

}  // namespace

TEST_CASE("start: streams every event with the contracted headers, and keeps the connection", "[api]") {
  ServerFixture f;
  f.model.ThenAnswer("hello");
  TestClient client(f.port);
  client.Send(RequestText(f.port, "POST", "/chats/c1/interactions", R"({"user_message":"hi"})"));
  const auto response = client.ReadResponse();
  CHECK(response.status == 200);
  CHECK(response.Header("Content-Type") == "text/event-stream");
  CHECK(response.Header("Cache-Control") == "no-cache");
  CHECK(response.Header("Connection") == "keep-alive");
  CHECK(response.Header("X-Accel-Buffering") == "no");
  CHECK(response.Header("X-Content-Type-Options") == "nosniff");
  CHECK(response.Header("Content-Location") == "/chats/c1/interactions/int_001/events");
  const auto frames = Frames(response.body);
  REQUIRE(frames.size() >= 4);
  for (std::size_t i = 0; i < frames.size(); ++i) CHECK(frames[i].id == std::to_string(i + 1));
  CHECK(frames.front().name == "interaction_started");
  CHECK(frames.back().name == "interaction_complete");
  client.Send(RequestText(f.port, "GET", "/chats/c1/interactions/int_001"));
  const Json interaction = Body(client.ReadResponse());
  CHECK(interaction["status"] == "COMPLETED");
  CHECK(interaction["user_message"] == "hi");
}

TEST_CASE("start: sends events to HTTP/1.0 unchunked, up to the end of the connection", "[api]") {
  ServerFixture f;
  f.model.ThenAnswer("hello");
  TestClient client(f.port);
  const std::string body = R"({"user_message":"hi"})";
  client.Send("POST /chats/c/interactions HTTP/1.0\r\nHost: localhost:" + std::to_string(f.port) +
              "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  const auto response = client.ReadResponse();
  CHECK(response.head.find("chunked") == std::string::npos);
  CHECK(Names(response.body).back() == "interaction_complete");
}

TEST_CASE("start: answers a request sent ahead after the open stream", "[api]") {
  ServerFixture f;
  f.model.ThenAnswer("hello");
  TestClient client(f.port);
  client.Send(RequestText(f.port, "POST", "/chats/c/interactions", R"({"user_message":"hi"})") +
              RequestText(f.port, "GET", "/healthz"));
  CHECK(Names(client.ReadResponse().body).back() == "interaction_complete");
  CHECK(client.ReadResponse().body == R"({"status":"ok"})");
}

TEST_CASE("start: answers stream:false with the finished interaction", "[api]") {
  ServerFixture f;
  f.model.ThenAnswer("hello");
  const auto response = f.Post("/chats/c/interactions", R"({"user_message":"hi","stream":false})");
  CHECK(response.status == 200);
  CHECK(Body(response)["status"] == "COMPLETED");
  CHECK(Body(response)["final_agent_state"]["messages"].size() >= 2);
}

TEST_CASE("start: answers bad ids, bodies and models with 400 and stores nothing", "[api]") {
  ServerFixture f;
  for (const char* chat : {"..", "a.b", "-a", "%2e%2e%2fx", "a%00b", "a%20b"}) {
    INFO(chat);
    const auto response = f.Post("/chats/" + std::string(chat) + "/interactions", R"({"user_message":"hi"})");
    CHECK(response.status == 400);
    CHECK(CodeOf(response) == "invalid_chat_id");
  }
  CHECK(f.Post("/chats/" + std::string(65, 'a') + "/interactions", R"({"user_message":"hi"})").status == 400);
  CHECK(f.Post("/chats/c/interactions", R"({"user_message":""})").status == 400);
  CHECK(f.Post("/chats/c/interactions", R"({"message":"hi"})").status == 400);
  CHECK(f.Post("/chats/c/interactions").status == 400);
  CHECK(CodeOf(f.Post("/chats/c/interactions", R"({"user_message":"hi","model":"nope"})")) == "unknown_model");
  CHECK(Body(f.Get("/chats"))["chats"].empty());
}

TEST_CASE("start: answers a second run in a chat with 409 and the first run's id", "[api]") {
  ServerFixture f;
  f.model.ThenHang("...");
  const TestClient running = StartOn(f, "c");
  f.model.AwaitHanging();
  const auto second = f.Post("/chats/c/interactions", R"({"user_message":"again"})");
  CHECK(second.status == 409);
  CHECK(CodeOf(second) == "busy");
  CHECK(Body(second)["error"]["details"]["interaction_id"] == "int_001");
}

TEST_CASE("cancel: answers at once and ends the stream with CANCELLED; repeated, it returns the status", "[api]") {
  ServerFixture f;
  f.model.ThenHang("...");
  TestClient running = StartOn(f, "c");
  f.model.AwaitHanging();
  const auto cancelled = f.Post("/chats/c/interactions/int_001/cancel");
  CHECK(cancelled.status == 200);
  CHECK(Body(cancelled) == Json({{"status", "cancelling"},
                                 {"interaction_id", "int_001"},
                                 {"message", "Interaction will stop at next checkpoint"}}));
  const auto names = Names(running.ReadStreamUntil("interaction_complete\ndata"));
  REQUIRE(names.size() >= 2);
  CHECK(names[names.size() - 2] == "cancelled");
  CHECK(AwaitStatus(f, "/chats/c/interactions/int_001") == "CANCELLED");
  CHECK(Body(f.Post("/chats/c/interactions/int_001/cancel", "{}"))["status"] == "CANCELLED");
  CHECK(f.Post("/chats/c/interactions/int_009/cancel").status == 404);
  CHECK(f.Post("/chats/c/interactions/nonsense/cancel").status == 404);
  CHECK(f.Post("/chats/unknown/interactions/int_001/cancel").status == 404);
}

TEST_CASE("approve: delivers the answer to the tool once, and refuses late and unknown answers", "[api]") {
  ServerFixture f;
  ThenDanger(f.model);
  f.model.ThenAnswer("done");
  TestClient running = StartOn(f, "c");
  const std::string id =
      FieldOf(running.ReadStreamUntil("event: approval_required"), "approval_required", "approval_id");
  const Json list = Body(f.Get("/approvals"));
  REQUIRE(list["approvals"].size() == 1);
  CHECK(list["approvals"][0]["approval_id"] == id);
  CHECK(list["approvals"][0]["chat_id"] == "c");
  const std::string path = "/chats/c/interactions/int_001/approve";
  const std::string body = R"({"approval_id":")" + id + R"(","approved":true})";
  const auto wrong_digest =
      f.Post(path, R"({"approval_id":")" + id + R"(","approved":true,"arguments_digest":"sha256:0"})");
  CHECK(wrong_digest.status == 409);
  CHECK(CodeOf(wrong_digest) == "digest_mismatch");
  CHECK(f.Post(path, R"({"approval_id":"approval_0","approved":true})").status == 404);
  const auto approved = f.Post(path, body);
  CHECK(approved.status == 200);
  CHECK(Body(approved) == Json({{"status", "processed"}, {"approval_id", id}, {"approved", true}}));
  CHECK(running.ReadStreamUntil("interaction_complete\ndata").find(R"(did {\"x\":1})") != std::string::npos);
  const auto again = f.Post(path, body);
  CHECK(again.status == 400);
  CHECK(CodeOf(again) == "already_processed");
}

TEST_CASE("approve: an answer needs no chat id, and a rejection may give a reason", "[api]") {
  ServerFixture f;
  ThenDanger(f.model);
  f.model.ThenAnswer("pity");
  TestClient running = StartOn(f, "c");
  const std::string id =
      FieldOf(running.ReadStreamUntil("event: approval_required"), "approval_required", "approval_id");
  CHECK(f.Post("/approvals/nope", R"({"approved":false})").status == 404);
  CHECK(Body(f.Get("/approvals/" + id + "/change"))["error"]["code"] == "no_change_to_show");
  CHECK(f.Get("/approvals/nope/change").status == 404);
  CHECK(f.Post("/approvals/" + id, R"({"approved":false,"feedback":"too risky"})").status == 200);
  const auto names = Names(running.ReadStreamUntil("interaction_complete\ndata"));
  CHECK(std::find(names.begin(), names.end(), "rejected") != names.end());
  CHECK(Body(f.Get("/approvals"))["approvals"].empty());
}

TEST_CASE("approve: with Accept: text/event-stream, streams only the events that follow", "[api]") {
  ServerFixture f;
  ThenDanger(f.model);
  f.model.ThenAnswer("done");
  TestClient running = StartOn(f, "c");
  const std::string id =
      FieldOf(running.ReadStreamUntil("event: approval_required"), "approval_required", "approval_id");
  const auto response = f.Post("/chats/c/interactions/int_001/approve",
                               R"({"approval_id":")" + id + R"(","approved":true})", "Accept: text/event-stream\r\n");
  CHECK(response.status == 200);
  const auto names = Names(response.body);
  CHECK(names.front() == "approved");
  CHECK(names.back() == "interaction_complete");
}

TEST_CASE("disconnect: a client that leaves ends its run, however it leaves", "[api]") {
  ServerFixture f;
  for (const int how : {0, 1, 2}) {
    Hang hang(f.model);
    const std::string chat = "c" + std::to_string(how);
    TestClient client = StartOn(f, chat);
    hang.asked.get_future().wait();
    if (how == 0) client.Close();
    if (how == 1) client.CloseSending();
    if (how == 2) client.Reset();
    CHECK(hang.stopped.get_future().wait_for(10s) == std::future_status::ready);
    CHECK(AwaitStatus(f, "/chats/" + chat + "/interactions/int_001") == "CANCELLED");
  }
}

TEST_CASE("disconnect: a client that leaves while it waits for the whole answer ends its run", "[api]") {
  ServerFixture f;
  Hang hang(f.model);
  TestClient client(f.port);
  client.Send(RequestText(f.port, "POST", "/chats/c/interactions", R"({"user_message":"hi","stream":false})"));
  hang.asked.get_future().wait();
  client.Close();
  CHECK(hang.stopped.get_future().wait_for(10s) == std::future_status::ready);
  CHECK(AwaitStatus(f, "/chats/c/interactions/int_001") == "CANCELLED");
}

TEST_CASE("disconnect: a pending approval stays, and another client can answer it", "[api]") {
  ServerFixture f;
  ThenDanger(f.model);
  f.model.ThenAnswer("done");
  TestClient client = StartOn(f, "c", R"({"user_message":"hi","on_disconnect":"continue"})");
  const std::string id =
      FieldOf(client.ReadStreamUntil("event: approval_required"), "approval_required", "approval_id");
  client.Close();
  TestClient other(f.port);
  other.Send(RequestText(f.port, "GET", "/chats/c/interactions/int_001/events", {}, "Accept: text/event-stream\r\n"));
  other.ReadUntil("\r\n\r\n");
  const std::string so_far = other.ReadStreamUntil("event: stream_live");
  const auto frames = Frames(so_far);
  REQUIRE(frames.front().name == "stream_open");
  CHECK(frames.front().id.empty());
  CHECK(frames.front().data["status"] == "WAITING_APPROVAL");
  CHECK(frames.front().data["first_seq"] == 1);
  REQUIRE(frames.front().data["pending_approvals"].size() == 1);
  CHECK(frames.front().data["pending_approvals"][0]["approval_id"] == id);
  CHECK(f.Post("/approvals/" + id, R"({"approved":true})").status == 200);
  CHECK(Names(other.ReadStreamUntil("interaction_complete\ndata")).back() == "interaction_complete");
}

TEST_CASE("events: streams recorded events from any number on, and answers 204 after the last", "[api]") {
  ServerFixture f;
  f.model.ThenAnswer("hello");
  const auto live = Frames(f.Post("/chats/c/interactions", R"({"user_message":"hi"})").body);
  const std::string path = "/chats/c/interactions/int_001/events";
  const std::string sse = "Accept: text/event-stream\r\n";
  const auto replay = f.Get(path, sse);
  CHECK(replay.Header("Content-Type") == "text/event-stream");
  auto names = Names(replay.body);
  CHECK(names.front() == "stream_open");
  CHECK(names.back() == "interaction_complete");
  CHECK(std::find(names.begin(), names.end(), "stream_live") == names.end());
  const std::string last = live.back().id;
  const auto rest = f.Get(path, sse + "Last-Event-ID: " + std::to_string(std::stoi(last) - 1) + "\r\n");
  CHECK(Names(rest.body) == std::vector<std::string>{"stream_open", "interaction_complete"});
  const auto nothing = f.Get(path, sse + "Last-Event-ID: " + last + "\r\n");
  CHECK(nothing.status == 204);
  CHECK(nothing.Header("Content-Length").empty());
  CHECK(f.Get(path + "?after_seq=99999", sse).status == 400);
  CHECK(CodeOf(f.Get(path + "?after_seq=99999", sse)) == "cursor_ahead");
  CHECK(f.Get(path + "?after_seq=x", sse).status == 400);
  CHECK(f.Get("/chats/c/interactions/int_002/events", sse).status == 404);
}

TEST_CASE("events: without the Accept header, answers JSON pages", "[api]") {
  ServerFixture f;
  f.model.ThenAnswer("hello");
  f.Post("/chats/c/interactions", R"({"user_message":"hi"})");
  const std::string path = "/chats/c/interactions/int_001/events";
  const Json all = Body(f.Get(path, "Accept: */*\r\n"));
  REQUIRE(all["events"].size() >= 3);
  CHECK(all["events"].front()["type"] == "INTERACTION_STARTED");
  CHECK(all["events"].back()["type"] == "INTERACTION_COMPLETE");
  CHECK(all["next_seq"] == all["events"].back()["seq"]);
  Json collected = Json::array();
  int after = 0;
  while (true) {
    const Json page = Body(f.Get(path + "?limit=1&after_seq=" + std::to_string(after)));
    if (page["events"].empty()) break;
    REQUIRE(page["events"].size() == 1);
    collected.push_back(page["events"][0]);
    after = page["next_seq"];
  }
  CHECK(collected == all["events"]);
  CHECK(f.Get(path + "?limit=0").status == 400);
}

TEST_CASE("edit: previews, then restores the earlier state and supersedes the later interactions", "[api]") {
  ServerFixture f;
  f.model.ThenAnswer("one");
  f.model.ThenAnswer("two");
  f.model.ThenAnswer("other");
  f.model.ThenAnswer("again");
  f.Post("/chats/c/interactions", R"({"user_message":"first"})");
  f.Post("/chats/c/interactions", R"({"user_message":"second"})");
  const std::string edit = "/chats/c/interactions/int_002/edit";
  const Json preview = Body(f.Post(edit, R"({"new_user_message":"else","dry_run":true})"));
  CHECK(preview["dry_run"] == true);
  CHECK(preview["superseded"] == Json({"int_002"}));
  CHECK(preview["side_effects"].empty());
  const auto edited = f.Post(edit, R"({"new_user_message":"else"})");
  CHECK(edited.Header("Content-Location") == "/chats/c/interactions/int_003/events");
  CHECK(FieldOf(edited.body, "interaction_started", "edited_from") == "int_002");
  const Json head = Body(f.Get("/chats/c"));
  REQUIRE(head["interactions"].size() == 2);
  CHECK(head["interactions"][1]["id"] == "int_003");
  CHECK_FALSE(head["interactions"][1].contains("superseded"));
  const Json all = Body(f.Get("/chats/c?branches=all"));
  REQUIRE(all["interactions"].size() == 3);
  CHECK(all["interactions"][1]["superseded"] == true);
  CHECK(all["interactions"][2]["superseded"] == false);
  CHECK(f.Get("/chats/c?branches=some").status == 400);
  CHECK(Body(f.Post("/chats/c/interactions/int_003/regenerate", R"({"stream":false})"))["edited_from"] == "int_003");
  CHECK(Body(f.Post("/chats/c/head", R"({"interaction_id":"int_002"})"))["head"] == "int_002");
  CHECK(f.Post("/chats/c/head", R"({"interaction_id":"int_009"})").status == 404);
  CHECK(f.Post("/chats/c/interactions/int_009/edit", R"({"new_user_message":"x"})").status == 404);
  CHECK(f.Post("/chats/c/interactions/int_009/edit", R"({"new_user_message":"x","dry_run":true})").status == 404);
}

TEST_CASE("chats: create, list in pages, rename, read, delete", "[api]") {
  ServerFixture f;
  const auto created = f.Post("/chats", R"({"id":"a","title":"A"})");
  CHECK(created.status == 201);
  CHECK(created.Header("Location") == "/chats/a");
  CHECK(Body(created)["title"] == "A");
  CHECK(f.Post("/chats", R"({"id":"a"})").status == 409);
  for (const char* id : {"b", "d", "e"}) CHECK(f.Post("/chats", R"({"id":")" + std::string(id) + "\"}").status == 201);
  const Json whole = Body(f.Get("/chats"));
  REQUIRE(whole["chats"].size() == 4);
  CHECK(whole["next"].is_null());
  CHECK(whole["chats"][0]["status"] == "idle");
  CHECK(whole["chats"][0]["head_status"].is_null());
  Json paged = Json::array();
  std::string query = "?limit=3";
  for (int pages = 0; pages < 3; ++pages) {
    const Json page = Body(f.Get("/chats" + query));
    for (const Json& chat : page["chats"]) paged.push_back(chat);
    if (page["next"].is_null()) break;
    query = "?limit=3&cursor=" + page["next"].get<std::string>();
  }
  CHECK(paged == whole["chats"]);
  CHECK(f.Get("/chats?cursor=nonsense").status == 400);
  CHECK(f.Get("/chats?limit=501").status == 400);
  CHECK(Body(Ask(f.port, "PATCH", "/chats/b", R"({"title":"new"})"))["title"] == "new");
  CHECK(Ask(f.port, "PATCH", "/chats/x", R"({"title":"new"})").status == 404);
  const auto deleted = Ask(f.port, "DELETE", "/chats/b");
  CHECK(Body(deleted) == Json({{"status", "deleted"}, {"chat_id", "b"}}));
  CHECK(f.Get("/chats/b").status == 404);
  CHECK(Ask(f.port, "DELETE", "/chats/b").status == 404);
}

TEST_CASE("tools and models are listed", "[api]") {
  ServerFixture f;
  const Json tools = Body(f.Get("/tools"));
  CHECK(tools["read_only"] == Json({"look"}));
  CHECK(tools["read_write"] == Json({"danger"}));
  CHECK(tools["approval_mode"] == "ask");
  CHECK(tools["tools"][0] == Json({{"name", "danger"},
                                   {"description", "a fake"},
                                   {"parameters", {{"type", "object"}}},
                                   {"read_only", false},
                                   {"requires_approval", true}}));
  CHECK(Body(f.Get("/models"))["default"] == "scripted");
}

TEST_CASE("heartbeat: sends comments on a silent stream", "[api]") {
  ServerOptions options;
  options.heartbeat = 40ms;
  ServerFixture f(options);
  f.model.ThenHang("...");
  TestClient client = StartOn(f, "c");
  CHECK(client.ReadStreamUntil(": keep-alive\n\n: keep-alive").find(": keep-alive\n\n: keep-alive") !=
        std::string::npos);
}

TEST_CASE("many streams and slow sockets do not delay an approval", "[api]") {
  ServerOptions options;
  options.header_timeout = 60s;
  ServerFixture f(options);
  constexpr int kStreams = 64, kSlow = 200;
  for (int i = 0; i < kStreams; ++i) ThenDanger(f.model);
  for (int i = 0; i < kStreams; ++i) f.model.ThenAnswer("done");
  std::vector<TestClient> streams, slow;
  std::vector<std::string> ids;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(StartOn(f, "c" + std::to_string(i)));
    ids.push_back(
        FieldOf(streams.back().ReadStreamUntil("event: approval_required"), "approval_required", "approval_id"));
  }
  for (int i = 0; i < kSlow; ++i) {
    slow.emplace_back(f.port);
    slow.back().Send("GET /healthz HTT");
  }
  for (int i = 0; i < kStreams; ++i) {
    const auto before = std::chrono::steady_clock::now();
    CHECK(f.Post("/approvals/" + ids[static_cast<std::size_t>(i)], R"({"approved":true})").status == 200);
    CHECK(std::chrono::steady_clock::now() - before < 20s);  // less than the slow sockets' time limit
  }
  for (TestClient& stream : streams) {
    CHECK(Names(stream.ReadStreamUntil("interaction_complete\ndata")).back() == "interaction_complete");
  }
}

TEST_CASE("many listeners of one run all see every event", "[api]") {
  ServerFixture f;
  std::promise<void> go;
  f.model.Then([&](const auto&, ModelStream& stream, std::stop_token) -> Result<ModelResponse> {
    go.get_future().wait();
    for (int i = 0; i < 200; ++i) {
      stream.OnText("word" + std::to_string(i) + " ");
      stream.OnBatchEnd();
    }
    return ModelResponse{};
  });
  TestClient first = StartOn(f, "c");
  first.ReadStreamUntil("interaction_started");
  std::vector<TestClient> listeners;
  for (int i = 0; i < 20; ++i) {
    listeners.emplace_back(f.port);
    listeners.back().Send(
        RequestText(f.port, "GET", "/chats/c/interactions/int_001/events", {}, "Accept: text/event-stream\r\n"));
    listeners.back().ReadUntil("\r\n\r\n");
    listeners.back().ReadStreamUntil("event: stream_live");
  }
  go.set_value();
  const std::string expected = first.ReadStreamUntil("interaction_complete\ndata");
  for (TestClient& listener : listeners) {
    std::vector<Frame> seen = Frames(listener.ReadStreamUntil("interaction_complete\ndata"));
    std::erase_if(seen, [](const Frame& frame) { return frame.id.empty(); });
    const auto wanted = Frames(expected);
    REQUIRE(seen.size() == wanted.size());
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i].id == std::to_string(i + 1));
  }
}

TEST_CASE("stop: streams get their last event, new requests get 503", "[api]") {
  ServerFixture f;
  f.model.ThenHang("...");
  TestClient running = StartOn(f, "c");
  f.model.AwaitHanging();
  TestClient kept(f.port);
  kept.Send("GET /healthz HTTP/1.1\r\n");
  f.Get("/healthz");  // the server has read the half request by now, because it reads bytes in order of arrival
  f.server->BeginStop();
  kept.Send("Host: localhost:" + std::to_string(f.port) + "\r\n\r\n");
  const auto refused = kept.ReadResponse();
  CHECK((refused.status == 503 || refused.status == 0));
  f.engine->Stop();
  f.server->Stop();
  const auto names = Names(running.ReadStreamUntil("interaction_complete\ndata"));
  REQUIRE_FALSE(names.empty());
  CHECK(names.back() == "interaction_complete");
  CHECK(running.ReadToEnd() == "0\r\n\r\n");
}

}  // namespace reprise::api_test
