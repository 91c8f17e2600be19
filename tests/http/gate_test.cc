#include "http/gate.h"

#include "support/test.h"

using namespace reprise;

namespace {

RequestHead HeadWith(HeaderList headers) {
  return {.method = "GET", .target = "/", .version = 11, .headers = std::move(headers)};
}
int StatusOf(const std::optional<Reply>& refusal) { return refusal ? refusal->status : 200; }
int CheckHost(const Gate& gate, std::string host) {
  return StatusOf(gate.Check(HeadWith({{"host", host}}), Peer::kTrusted));
}

}  // namespace

TEST_CASE("Gate: only this server's own names and port are a Host", "[http]") {
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

TEST_CASE("Gate: a name may leave out the port only if it is 80", "[http]") {
  CHECK(CheckHost(Gate({.port = 80}), "localhost") == 200);
  CHECK(CheckHost(Gate({.port = 80}), "localhost:80") == 200);
}

TEST_CASE("Gate: a foreign Origin or site is refused, our own is not", "[http]") {
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

TEST_CASE("Gate: without a token only the same user may pass", "[http]") {
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

TEST_CASE("Gate: with a token everybody must show it, and whoever does may pass", "[http]") {
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

TEST_CASE("Gate: listening on every address, a literal address is a Host and a name is not", "[http]") {
  const Gate gate({.port = 8000, .any_address = true, .token = "t"});
  const auto with = [&](const char* host) {
    return StatusOf(gate.Check(HeadWith({{"host", host}, {"authorization", "Bearer t"}}), Peer::kRemote));
  };
  CHECK(with("192.0.2.1:8000") == 200);
  CHECK(with("[2001:db8::1]:8000") == 200);
  CHECK(with("192.0.2.1:8001") == 403);
  CHECK(with("evil.example:8000") == 403);
}
