#include "client/server_access.h"

#include "support/scripted_server.h"
#include "support/test.h"

namespace reprise::server_access_test {
namespace {

using test::ScriptedConnection;
using test::ScriptedServer;

Error ErrorOf(const std::string& url) {
  ServerClient client(url, "");
  const auto answer = client.Call("GET", "/healthz");
  REQUIRE(!answer);
  return answer.error();
}

TEST_CASE("HowLost: knows the errors of transport and server that mean a lost server", "[client]") {
  CHECK(HowLost(ErrorOf("http://127.0.0.1:1")) == Loss::kNeverReached);
  CHECK(HowLost(ErrorOf("http://no-such-host.invalid")) == Loss::kNeverReached);
  ScriptedServer breaks([](ScriptedConnection& connection) {
    static_cast<void>(connection.ReadRequest());
    connection.Reset();
  });
  CHECK(HowLost(ErrorOf(breaks.Url(""))) == Loss::kBroken);
  CHECK(HowLost(ErrorOf("https" + breaks.Url("").substr(4))) == Loss::kNeverReached);
  ScriptedServer ends([](ScriptedConnection& connection) {
    static_cast<void>(connection.ReadRequest());
    connection.SendResponse("503 Service Unavailable", "application/json",
                            R"({"error": {"code": "stopping", "message": "the server is stopping"}})");
  });
  CHECK(HowLost(ErrorOf(ends.Url(""))) == Loss::kEnding);
  CHECK(HowLost(Refused(Reason::kIdleTimeout, "")) == Loss::kSilent);
  CHECK(HowLost(MakeError(ErrorCode::kUnavailable, "this is not a Reprise server")) == Loss::kNone);
}

TEST_CASE("NotAnswering: names the URL if there was no connection", "[client]") {
  for (const char* url : {"http://127.0.0.1:1", "http://no-such-host.invalid"}) {
    ServerClient client(url, "");
    const Error error = NotAnswering(client.Call("GET", "/healthz").error(), client);
    CHECK(error.message.starts_with("no Reprise server answers at " + std::string(url)));
  }
  ServerClient client("http://127.0.0.1:1", "");
  CHECK(NotAnswering(Refused(Reason::kBusy, "it runs"), client).message == "it runs");
}

}  // namespace
}  // namespace reprise::server_access_test
