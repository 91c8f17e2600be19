#include "wire/router.h"

#include "support/test.h"

namespace reprise::router_test {
namespace {

Router MakeRouter() {
  Router router;
  const Handler nothing = [](const Request&) -> Result<Outcome> { return Reply{}; };
  router.Add("GET", "/chats", nothing);
  router.Add("POST", "/chats", nothing);
  router.Add("GET", "/chats/*", nothing);
  router.Add("POST", "/chats/*/interactions/*/cancel", nothing, Lane::kControl);
  return router;
}
int StatusOf(const Router& router, std::string_view method, std::string_view target) {
  const auto match = router.Find(method, target);
  return match.refusal ? match.refusal->status : 200;
}

}  // namespace

TEST_CASE("Router: finds a route and captures its open segments, decoded", "[wire]") {
  const Router router = MakeRouter();
  const auto match = router.Find("POST", "/chats/a%5Fb/interactions/int_001/cancel?x=/y");
  REQUIRE(match.route);
  CHECK(match.captures == std::vector<std::string>{"a_b", "int_001"});
  CHECK(match.route->lane == Lane::kControl);
  CHECK(router.Find("GET", "/chats/a%2fb").captures == std::vector<std::string>{"a/b"});
}

TEST_CASE("Router: answers unknown paths with 404, and other methods of known paths with 405 and Allow", "[wire]") {
  const Router router = MakeRouter();
  for (const char* path :
       {"/", "/nope", "/chats/", "/chats/a/", "//chats", "/chats//interactions/x/cancel", "/CHATS"}) {
    INFO(path);
    CHECK(StatusOf(router, "GET", path) == 404);
  }
  CHECK(StatusOf(router, "GET", "/chats/%zz") == 400);
  CHECK(StatusOf(router, "GET", "/chats/%4") == 400);
  const auto match = router.Find("DELETE", "/chats");
  REQUIRE(match.refusal);
  CHECK(match.refusal->status == 405);
  CHECK(match.refusal->headers == HeaderList{{"Allow", "GET, HEAD, POST"}});
  CHECK(StatusOf(router, "get", "/chats") == 405);
  CHECK(StatusOf(router, "HEAD", "/chats") == 200);
  CHECK(StatusOf(router, "HEAD", "/chats/c/interactions/i/cancel") == 405);
}

TEST_CASE("Request: decodes query values and takes the first of a name", "[wire]") {
  Request request;
  request.head.target = "/x?a=1%2B+2&b&c=&a=3&d=x%zz&e=a=b";
  CHECK(request.Query("a") == "1+ 2");
  CHECK(request.Query("b") == "");
  CHECK(request.Query("c") == "");
  CHECK(request.Query("d") == "x%zz");
  CHECK(request.Query("e") == "a=b");
  CHECK_FALSE(request.Query("f"));
}

TEST_CASE("Request: accepts a media type only if it is listed by name", "[wire]") {
  Request request;
  CHECK_FALSE(request.Accepts("text/event-stream"));
  request.head.headers = {{"accept", "*/*"}};
  CHECK_FALSE(request.Accepts("text/event-stream"));
  request.head.headers = {{"accept", "application/json, Text/Event-Stream;q=0.9"}};
  CHECK(request.Accepts("text/event-stream"));
}

TEST_CASE("Router: finds the error form of a prefix", "[wire]") {
  Router router = MakeRouter();
  const ErrorForm form = [](Reply& reply) { reply.body = "theirs"; };
  router.SetErrorForm("/v1/", form);
  CHECK(router.ErrorFormOf("/v1/unknown?x=1") == form);
  CHECK(router.ErrorFormOf("/chats") == nullptr);
  CHECK(router.ErrorFormOf("/v1") == nullptr);
}

}  // namespace reprise::router_test
