#include <nlohmann/json.hpp>

#include "base/json.h"
#include "server_fixture.h"

namespace reprise::import_test {
namespace {

Json Body(const TestResponse& response) {
  auto json = ParseJson(response.body);
  REQUIRE(json);
  return *std::move(json);
}
std::string CodeOf(const TestResponse& response) { return Body(response)["error"]["code"]; }

Json Document() {
  return {{"id", "trip"},
          {"title", "A trip"},
          {"interactions",
           Json::array({Json{{"id", "int_001"},
                             {"status", "COMPLETED"},
                             {"user_message", "Where to?"},
                             {"agent_events", Json::array({Json{{"type", "ANSWER"}, {"content", "Rome"}}})}}})}};
}

}  // namespace

TEST_CASE("Import: stores a chat under its name, or under the next free one", "[api]") {
  ServerFixture f;
  const auto first = f.Post("/import", DumpJson(Document()));
  REQUIRE(first.status == 201);
  CHECK(first.Header("Location") == "/chats/trip");
  const Json told = Body(first);
  CHECK(told["id"] == "trip");
  CHECK(told["title"] == "A trip");
  CHECK(told["head"] == "int_001");
  CHECK(told["status"] == "COMPLETED");
  CHECK(told["notes"] == Json::array({"int_001 had no state; it was made from its events"}));
  CHECK(Body(f.Post("/import", DumpJson(Document())))["id"] == "trip-2");
  CHECK(Body(f.Get("/chats/trip-2"))["interactions"][0]["chat_id"] == "trip-2");
  CHECK(Body(f.Post("/import?as=other", DumpJson(Document())))["id"] == "other");
  const auto taken = f.Post("/import?as=other", DumpJson(Document()));
  CHECK(taken.status == 409);
  CHECK(CodeOf(taken) == "chat_exists");
  CHECK(Body(f.Get("/chats"))["chats"].size() == 3);
  CHECK(Body(f.Get("/chats/other"))["interactions"][0]["user_message"] == "Where to?");

  f.model.ThenAnswer("further");
  CHECK(f.Post("/chats/other/interactions", R"({"user_message":"and then?","stream":false})").status == 200);
  CHECK(Body(f.Get("/chats/other"))["interactions"].size() == 2);
}

TEST_CASE("Import: refuses a bad document and stores nothing of it", "[api]") {
  ServerFixture f;
  const auto refusal = [&](const std::string& body, const std::string& path = "/import") {
    const auto answer = f.Post(path, body);
    CHECK(answer.status == 400);
    return CodeOf(answer);
  };
  CHECK(refusal("{") == "invalid_json");
  CHECK(refusal(R"({"a":1,"a":2})") == "duplicate_member");
  CHECK(refusal("{}") == "invalid_document");
  CHECK(refusal(DumpJson(Document()), "/import?as=a/b") == "invalid_parameter");
  Json nameless = Document();
  nameless["id"] = "not a name";
  CHECK(refusal(DumpJson(nameless)) == "invalid_document");
  CHECK(Body(f.Post("/import?as=named", DumpJson(nameless)))["id"] == "named");
  Json broken = Document();
  broken["interactions"].push_back({{"id", "int_002"}, {"status", "COMPLETED"}, {"user_message", 7}});
  CHECK(refusal(DumpJson(broken)) == "invalid_document");
  CHECK(Body(f.Get("/chats"))["chats"].size() == 1);
}

TEST_CASE("Import: takes larger bodies than other routes, only JSON, up to a limit", "[api]") {
  ServerOptions options;
  options.limits.body_bytes = 1000;
  options.limits.chat_bytes = 20'000;
  ServerFixture f(std::move(options));
  Json document = Document();
  document["interactions"][0]["user_message"] = std::string(15'000, 'x');
  CHECK(f.Post("/import", DumpJson(document)).status == 201);
  document["interactions"][0]["user_message"] = std::string(20'000, 'x');
  const auto large = f.Post("/import", DumpJson(document));
  CHECK(large.status == 413);
  CHECK(CodeOf(large) == "too_large");
  TestClient client(f.port);
  client.Send("POST /import HTTP/1.1\r\nHost: localhost:" + std::to_string(f.port) +
              "\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
  CHECK(client.ReadResponse().status == 415);
}

}  // namespace reprise::import_test
