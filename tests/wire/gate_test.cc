#include "wire/gate.h"

#include <future>
#include <memory>

#include "crypto/digest.h"
#include "people/api_tokens.h"
#include "people/authenticator.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::gate_test {
namespace {

RequestHead HeadWith(HeaderList headers) {
  return {.method = "GET", .target = "/chats", .version = 11, .headers = std::move(headers)};
}
int StatusOf(const std::optional<Reply>& refusal) { return refusal ? refusal->status : 200; }
int CheckHost(const Gate& gate, std::string host) {
  return StatusOf(gate.Check(HeadWith({{"host", host}}), Peer::kTrusted));
}

}  // namespace

TEST_CASE("Gate: accepts only this server's own names and port as a Host", "[wire]") {
  const Gate gate({.port = 8000});
  for (const char* ours : {"127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LocalHost:8000", "127.0.0.1", "[::1]"}) {
    CHECK(CheckHost(gate, ours) == 200);
  }
  for (const char* foreign : {"evil.example", "evil.example:8000", "localhost", "localhost:80", "127.0.0.1:8001",
                              "0.0.0.0:8000", "", "localhost:8000.evil.example", "evil.example/localhost:8000",
                              "localhost:8000, evil.example", "user@localhost:8000", "127.0.0.1:08000", "::1:8000"}) {
    INFO(foreign);
    CHECK(CheckHost(gate, foreign) == 403);
  }
  CHECK(StatusOf(gate.Check(HeadWith({}), Peer::kTrusted)) == 403);
  CHECK(StatusOf(gate.Check(HeadWith({{"host", "localhost:8000"}, {"host", "localhost:8000"}}), Peer::kTrusted)) ==
        403);
}

TEST_CASE("Gate: a Host may omit the port only if it is 80", "[wire]") {
  CHECK(CheckHost(Gate({.port = 80}), "localhost") == 200);
  CHECK(CheckHost(Gate({.port = 80}), "localhost:80") == 200);
}

TEST_CASE("Gate: refuses a foreign Origin or site, not our own", "[wire]") {
  const Gate gate({.port = 8000});
  const auto with = [&](const char* name, const char* value) {
    const auto refusal = gate.Check(HeadWith({{"host", "localhost:8000"}, {name, value}}), Peer::kTrusted);
    if (refusal) CHECK(refusal->body.find("forbidden_origin") != std::string::npos);
    return StatusOf(refusal);
  };
  for (const char* ours : {"http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000"})
    CHECK(with("origin", ours) == 200);
  for (const char* foreign : {"null", "http://evil.example", "https://localhost:8000", "http://localhost:3000",
                              "http://localhost:8000.evil.example", "", "file://"}) {
    INFO(foreign);
    CHECK(with("origin", foreign) == 403);
  }
  CHECK(with("sec-fetch-site", "cross-site") == 403);
  CHECK(with("sec-fetch-site", "same-site") == 403);
  CHECK(with("sec-fetch-site", "same-origin") == 200);
  CHECK(with("sec-fetch-site", "none") == 200);
}

TEST_CASE("Gate: the local user is the operator on this machine, by its own name and through no proxy", "[wire]") {
  const Gate gate({.port = 8000, .public_hosts = {{.host = "chat.example"}}});
  const auto is_local = [&](HeaderList headers, Peer peer = Peer::kTrusted, const Principal& who = Principal{}) {
    const RequestHead head = HeadWith(std::move(headers));
    return gate.IsLocal(head, peer, who);
  };
  for (const char* host : {"127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST:8000", "127.0.0.1"}) {
    CHECK(is_local({{"host", host}}));
    CHECK(is_local({{"host", host}, {"origin", "http://localhost:8000"}}));
  }
  for (const char* host : {"chat.example", "localhost:8001", "127.0.0.1.chat.example", ""}) {
    INFO(host);
    CHECK_FALSE(is_local({{"host", host}}));
  }
  CHECK_FALSE(is_local({}));
  for (const char* origin : {"https://chat.example", "http://chat.example", "https://localhost:8000", "null"}) {
    CHECK_FALSE(is_local({{"host", "localhost:8000"}, {"origin", origin}}));
  }
  for (const char* name : {"x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"}) {
    CHECK_FALSE(is_local({{"host", "localhost:8000"}, {name, "127.0.0.1"}}));
  }
  for (const Peer peer : {Peer::kForeign, Peer::kUnknown, Peer::kRemote}) {
    CHECK_FALSE(is_local({{"host", "localhost:8000"}}, peer));
  }
  for (const auto role : {Principal::Role::kUser, Principal::Role::kOrgAdmin, Principal::Role::kNobody}) {
    CHECK_FALSE(is_local({{"host", "localhost:8000"}}, Peer::kTrusted, {.role = role}));
  }
}

TEST_CASE("Gate: without a token, admits only the same user", "[wire]") {
  const Gate gate({.port = 1});
  const RequestHead head = HeadWith({{"host", "localhost:1"}});
  CHECK(StatusOf(gate.Check(head, Peer::kTrusted)) == 200);
  for (const Peer peer : {Peer::kForeign, Peer::kUnknown, Peer::kRemote}) {
    const auto refusal = gate.Check(head, peer);
    REQUIRE(refusal);
    CHECK(refusal->status == 403);
    CHECK(refusal->body.find("forbidden_user") != std::string::npos);
  }
}

// The headers that a logged-in browser sends, without the attributes of Set-Cookie.
HeaderList Halves(const Gate& gate, std::string_view token, const RequestHead& head) {
  const auto session = gate.LogIn(token, head).value();
  return {{"cookie", session.set_cookie.substr(0, session.set_cookie.find(';'))},
          {"reprise-page-key", session.page_key}};
}

TEST_CASE("Gate: serves the page without a token, and takes the cookie and the page key together for it", "[wire]") {
  const Gate gate({.port = 8000, .token = "secret"});
  const auto status = [&](std::string method, std::string target, HeaderList headers = {}) {
    headers.emplace_back("host", "localhost:8000");
    const RequestHead head{
        .method = std::move(method), .target = std::move(target), .version = 11, .headers = std::move(headers)};
    return StatusOf(gate.Check(head, Peer::kRemote));
  };
  for (const char* open : {"/", "/?x=1", "/assets/A.js"}) CHECK(status("GET", open) == 200);
  CHECK(status("POST", "/login") == 200);
  for (const char* closed : {"/chats", "/login", "/assets", "//", "/index.html"}) CHECK(status("GET", closed) == 401);
  CHECK(status("POST", "/") == 401);
  CHECK(status("GET", "/", {{"authorization", "Bearer wrong"}}) == 401);

  const RequestHead head = HeadWith({{"host", "localhost:8000"}});
  CHECK_FALSE(gate.LogIn("wrong", head));
  const HeaderList halves = Halves(gate, "secret", head), others = Halves(gate, "secret", head);
  CHECK(halves[0].second.starts_with("reprise_8000="));
  CHECK(gate.LogIn("secret", head)->set_cookie.find("Secure") == std::string::npos);
  CHECK(gate.LogIn("secret", HeadWith({{"origin", "https://a.example"}}))->set_cookie.ends_with("; Secure"));
  CHECK(status("GET", "/chats", halves) == 200);
  CHECK(status("GET", "/chats", {{"cookie", "a=b;  " + halves[0].second + " ;c"}, halves[1]}) == 200);
  for (const HeaderList& wrong :
       {HeaderList{halves[0]}, HeaderList{halves[1]}, HeaderList{halves[0], others[1]},
        HeaderList{{"cookie", halves[0].second + "0"}, halves[1]},
        HeaderList{{"cookie", "x" + halves[0].second}, halves[1]},
        HeaderList{halves[0], {"reprise-page-key", halves[1].second + "0"}},
        HeaderList{{"cookie", "reprise_8000=secret"}, {"reprise-page-key", "secret"}},
        // Earlier versions set this cookie.
        HeaderList{{"cookie", "reprise_8000=" + Sha256Digest({"reprise cookie\n", "secret"}).substr(7)}}}) {
    INFO(wrong[0].second);
    CHECK(status("GET", "/chats", wrong) == 401);
    CHECK(status("GET", "/", {wrong[0]}) == 200);
  }
  CHECK(Gate({.port = 1}).LogIn("any", head)->page_key.empty());
}

TEST_CASE("Gate: with a token, admits exactly the requests that show it", "[wire]") {
  const Gate gate({.port = 1, .token = "secret"});
  const auto with = [&](HeaderList headers, Peer peer) {
    headers.emplace_back("host", "localhost:1");
    return StatusOf(gate.Check(HeadWith(std::move(headers)), peer));
  };
  CHECK(with({{"authorization", "Bearer secret"}}, Peer::kForeign) == 200);
  CHECK(with({{"authorization", "bearer secret"}}, Peer::kRemote) == 200);
  CHECK(with({}, Peer::kTrusted) == 401);
  for (const char* wrong :
       {"Bearer secre", "Bearer secrets", "Bearer Secret", "Basic secret", "secret", "Bearer", ""}) {
    INFO(wrong);
    CHECK(with({{"authorization", wrong}}, Peer::kTrusted) == 401);
  }
  CHECK(with({{"authorization", "Bearer secret"}, {"authorization", "Bearer secret"}}, Peer::kTrusted) == 401);
}

TEST_CASE("Gate: accepts a public host at its port, or at any port if it has none, and no other name", "[wire]") {
  const Gate gate({.port = 8000,
                   .public_hosts = {{.host = "chat.example", .port = std::nullopt},
                                    {.host = "Other.example", .port = 8443},
                                    {.host = "tls.example", .port = 443},
                                    {.host = "[2001:db8::1]", .port = std::nullopt},
                                    {.host = "localhost", .port = 9000}}});
  for (const char* ours :
       {"chat.example", "chat.example:1234", "CHAT.EXAMPLE:443", "other.example:8443", "tls.example", "tls.example:443",
        "[2001:db8::1]", "[2001:db8::1]:80", "localhost:9000", "localhost:8000", "127.0.0.1:8000"}) {
    INFO(ours);
    CHECK(CheckHost(gate, ours) == 200);
  }
  for (const char* foreign : {"evil.example",
                              "chat.example.evil.example",
                              "evil.chat.example",
                              "chat.example.",
                              "xchat.example",
                              "other.example",
                              "other.example:443",
                              "tls.example:8443",
                              "localhost",
                              "localhost:9001",
                              "127.0.0.1:9000",
                              "user@chat.example",
                              "chat.example/x",
                              "chat.example:",
                              "chat.example:0",
                              "chat.example:080",
                              "chat.example:99999",
                              "chat.example, evil.example",
                              "[2001:db8::2]",
                              "2001:db8::1",
                              "*",
                              ""}) {
    INFO(foreign);
    CHECK(CheckHost(gate, foreign) == 403);
  }
}

TEST_CASE("Gate: accepts requests from pages of public hosts, but not from other ports of the same name", "[wire]") {
  const Gate gate({.port = 8000,
                   .public_hosts = {{.host = "chat.example", .port = std::nullopt},
                                    {.host = "localhost", .port = std::nullopt},
                                    {.host = "other.example", .port = 8443},
                                    {.host = "tls.example", .port = 443}}});
  const auto with = [&](const char* host, const char* origin) {
    return StatusOf(gate.Check(HeadWith({{"host", host}, {"origin", origin}}), Peer::kTrusted));
  };
  CHECK(with("chat.example", "https://chat.example") == 200);
  CHECK(with("chat.example", "http://chat.example") == 200);
  CHECK(with("chat.example:8443", "https://chat.example:8443") == 200);
  CHECK(with("127.0.0.1:8000", "https://chat.example") == 200);  // a proxy that writes its own Host
  CHECK(with("localhost:9000", "http://localhost:9000") == 200);
  CHECK(with("other.example:8443", "https://other.example:8443") == 200);
  CHECK(with("tls.example", "https://tls.example") == 200);
  CHECK(with("localhost:8000", "http://localhost:8000") == 200);

  CHECK(with("chat.example", "https://evil.example") == 403);
  CHECK(with("chat.example", "null") == 403);
  CHECK(with("chat.example", "ftp://chat.example") == 403);
  CHECK(with("chat.example", "chat.example") == 403);
  CHECK(with("chat.example", "https://chat.example.evil.example") == 403);
  CHECK(with("localhost:9000", "http://localhost:3000") == 403);
  CHECK(with("chat.example", "https://chat.example:8443") == 403);
  CHECK(with("other.example:8443", "https://other.example") == 403);
  CHECK(with("tls.example", "http://tls.example") == 403);
  const auto refusal = gate.Check(
      HeadWith({{"host", "chat.example"}, {"origin", "https://chat.example"}, {"sec-fetch-site", "cross-site"}}),
      Peer::kTrusted);
  CHECK(StatusOf(refusal) == 403);
}

TEST_CASE("Gate: a public host does not change who is admitted", "[wire]") {
  const RequestHead head =
      HeadWith({{"host", "chat.example"}, {"x-forwarded-for", "127.0.0.1"}, {"forwarded", "for=x"}});
  const Gate open({.port = 8000, .public_hosts = {{.host = "chat.example"}}});
  CHECK(StatusOf(open.Check(head, Peer::kTrusted)) == 200);
  CHECK(StatusOf(open.Check(head, Peer::kForeign)) == 403);
  const Gate closed({.port = 8000, .public_hosts = {{.host = "chat.example"}}, .token = "t"});
  CHECK(StatusOf(closed.Check(head, Peer::kTrusted)) == 401);
}

TEST_CASE("ParsePublicHost: a name or an address, with or without a port", "[wire]") {
  for (const char* good : {"a", "chat.example:8443", "my_host", "192.0.2.1", "192.0.2.1:80", "[::1]", "[::1]:9000"}) {
    INFO(good);
    CHECK(ParsePublicHost(good));
  }
  for (const char* bad : {"", "https://chat.example", "chat.example/", "*", "*.example", "a b", "a:", "a:x", "a:0",
                          "a:65536", "::1", "[::1", "[x]", "a:+1", "user@a", "a,b"}) {
    INFO(bad);
    CHECK_FALSE(ParsePublicHost(bad));
  }
}

TEST_CASE("Gate: if it listens on every address, accepts any literal address as a Host but no name", "[wire]") {
  const Gate gate({.port = 8000, .any_address = true, .token = "t"});
  const auto with = [&](const char* host) {
    return StatusOf(gate.Check(HeadWith({{"host", host}, {"authorization", "Bearer t"}}), Peer::kRemote));
  };
  CHECK(with("192.0.2.1:8000") == 200);
  CHECK(with("[2001:db8::1]:8000") == 200);
  CHECK(with("192.0.2.1:8001") == 403);
  CHECK(with("evil.example:8000") == 403);
}

TEST_CASE("Gate: with people, a local user needs a token too", "[wire]") {
  const TempDirectory folder;
  ApiTokenFile file(folder.File("tokens.json"));
  const auto alice = file.Add({.role = Principal::Role::kUser, .org = "acme", .user = "alice"}, "", std::nullopt);
  const auto people = std::make_shared<Authenticator>(
      Authenticator::Options{.tokens = std::make_shared<ApiTokenFile>(folder.File("tokens.json"))});
  const Gate gate({.port = 8000, .token = "operators-token", .people = people});
  const auto who = [&](std::string method, std::string target, HeaderList headers) -> Result<Principal> {
    headers.emplace_back("host", "localhost:8000");
    const RequestHead head{.method = std::move(method), .target = std::move(target), .headers = std::move(headers)};
    CHECK_FALSE(gate.Check(head, Peer::kUnknown));
    const auto later = std::make_shared<std::promise<Result<Principal>>>();
    auto now = gate.Identify(head, [later](Result<Principal> told) { later->set_value(std::move(told)); });
    return now ? *now : later->get_future().get();
  };
  using Role = Principal::Role;
  CHECK(who("GET", "/chats", {{"authorization", "Bearer " + alice->text}})->user == "alice");
  CHECK(who("GET", "/chats", {{"authorization", "Bearer operators-token"}})->role == Role::kOperator);
  for (const char* open : {"/", "/assets/a.js", "/healthz", "/readyz"})
    CHECK(who("GET", open, {})->role == Role::kNobody);
  CHECK(who("POST", "/login", {})->role == Role::kNobody);
  for (const char* closed : {"/chats", "/metrics", "/healthz/", "/healthz?a", "/audit"}) {
    CHECK(who("GET", closed, {}).error().code == ErrorCode::kUnauthenticated);
  }
  CHECK(who("POST", "/healthz", {}).error().code == ErrorCode::kUnauthenticated);
  CHECK(who("GET", "/", {{"authorization", "Bearer nobodys"}}).error().reason == "invalid_token");
  CHECK(who("GET", "/chats", {{"cookie", "reprise=" + alice->text}}).error().reason == "unauthenticated");

  // One cookie name for all, because equal servers behind one name listen on different ports.
  const RequestHead head = HeadWith({{"host", "localhost:8000"}});
  CHECK_FALSE(gate.LogIn("reprise_nobodys", head));
  const HeaderList hers = Halves(gate, alice->text, head);
  CHECK(hers[0].second.starts_with("reprise="));
  CHECK(who("GET", "/chats", hers)->user == "alice");
  CHECK(who("GET", "/chats", Halves(gate, "operators-token", head))->role == Role::kOperator);
  CHECK(who("GET", "/chats", {hers[0]}).error().reason == "unauthenticated");
}

}  // namespace reprise::gate_test
