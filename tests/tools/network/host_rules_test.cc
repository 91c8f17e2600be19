#include "tools/network/host_rules.h"

#include "support/test.h"
#include "tools/network/handshakes.h"

namespace reprise {
namespace {

using Verdict = HostRules::Verdict;

HostRules Rules(const std::vector<std::string>& allow, const std::vector<std::string>& deny = {}) {
  auto rules = HostRules::Parse(allow, deny);
  REQUIRE(rules);
  return *std::move(rules);
}

// A ClientHello with these extensions, as one record.
std::string Hello(const std::string& extensions) {
  const auto counted = [](std::size_t bytes, const std::string& text) {
    std::string number;
    for (std::size_t i = bytes; i-- > 0;) number += static_cast<char>(text.size() >> (8 * i));
    return number + text;
  };
  const std::string body = "\x03\x03" + std::string(32, 'r') + counted(1, "") + counted(2, "\x13\x01") +
                           counted(1, std::string(1, '\0')) + counted(2, extensions);
  return "\x16\x03\x01" + counted(2, "\x01" + counted(3, body));
}

std::string ServerName(const std::string& name) {
  const auto two = [](std::size_t number) {
    return std::string{static_cast<char>(number >> 8), static_cast<char>(number)};
  };
  const std::string entry = std::string(1, '\0') + two(name.size()) + name;
  return two(0) + two(entry.size() + 2) + two(entry.size()) + entry;
}

}  // namespace

TEST_CASE("A host has one spelling", "[tools][network]") {
  CHECK(CanonicalHost("Packages.Example.") == "packages.example");
  CHECK(CanonicalHost("127.0.0.1") == "127.0.0.1");
  CHECK(CanonicalHost("0:0:0:0:0:0:0:1") == "::1");
  CHECK(CanonicalHost("::ffff:10.0.0.1") == "10.0.0.1");
  CHECK(CanonicalHost("xn--bcher-kva.example") == "xn--bcher-kva.example");
  for (const char* text :
       {"", ".", "a..b", ".a", "bücher.example", "127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1",
        "127.0.0.1.", "1.2.3.4.5", "a b", "a/b", "a@b", "[::1]", "fe80::1%lo", "a%2eb", "a.0x10"}) {
    INFO(text);
    CHECK_FALSE(CanonicalHost(text));
  }
  CHECK_FALSE(CanonicalHost(std::string_view("a\0b", 3)));
  CHECK_FALSE(CanonicalHost(std::string(64, 'a') + ".example"));
  CHECK(ParseHostPort("[::1]:80", 0) == HostPort{"::1", 80});
  for (const char* text : {"::1:80", "a:", "a:0", "a:65536", "a:+1", "a:80x", "[a]:80", "[::1", "a"}) {
    INFO(text);
    CHECK_FALSE(ParseHostPort(text, 0));
  }
}

TEST_CASE("Rules for hosts: deny comes first, and no port means those of the web", "[tools][network]") {
  const HostRules rules =
      Rules({"a.example", "*.b.example:443", "10.0.0.5:80", "localhost:5432", "*:8443"}, {"bad.b.example"});
  const auto allowed = [&](const char* host, std::uint16_t port) {
    return rules.For({host, port}).verdict == Verdict::kAllowed;
  };
  CHECK(allowed("a.example", 80));
  CHECK(allowed("a.example", 443));
  CHECK_FALSE(allowed("a.example", 22));
  CHECK_FALSE(allowed("x.a.example", 80));
  CHECK_FALSE(allowed("b.example", 443));
  CHECK(allowed("x.y.b.example", 443));
  CHECK_FALSE(allowed("x.b.example", 80));
  CHECK_FALSE(allowed("xb.example", 443));
  CHECK(rules.For({"bad.b.example", 443}).verdict == Verdict::kDenied);
  CHECK(allowed("10.0.0.5", 80));
  CHECK(allowed("any.example", 8443));
  CHECK(rules.For({"a.example", 80}).names_host);
  CHECK_FALSE(rules.For({"a.example", 80}).names_port);
  CHECK_FALSE(rules.For({"x.b.example", 443}).names_host);
  CHECK(rules.For({"localhost", 5432}).names_port);
  CHECK(rules.LoopbackPorts() == std::vector<std::uint16_t>{5432});
  for (const char* text : {"", "a:b", "http://a", "a*", "*a", "**", "*.127.0.0.1x:y", "a/24", "127.1"}) {
    INFO(text);
    CHECK_FALSE(HostRules::Parse({text}, {}));
  }
}

TEST_CASE("The first bytes of a tunnel must be meant for its host", "[tools][network]") {
  const HostPort target{"a.example", 443};
  const auto reading = [&](const std::string& bytes) { return CheckFirstBytes(bytes, target).reading; };
  const std::string good = Hello(ServerName("A.example"));
  CHECK(reading(good) == Reading::kDone);
  for (std::size_t size = 0; size < good.size(); ++size) CHECK(reading(good.substr(0, size)) == Reading::kMore);
  // The same in records of one byte.
  std::string pieces;
  for (const char c : good.substr(5)) pieces += std::string("\x16\x03\x01\x00\x01", 5) + c;
  CHECK(reading(pieces) == Reading::kDone);
  CHECK(reading(Hello(ServerName("b.example"))) == Reading::kRefused);
  CHECK(reading(Hello("")) == Reading::kRefused);
  CHECK(reading(Hello(ServerName("a.example") + ServerName("b.example"))) == Reading::kRefused);
  CHECK(reading(Hello(ServerName("a.example") + std::string("\xfe\x0d\x00\x00", 4))) == Reading::kRefused);
  CHECK(reading("\x16GET / HTTP/1.1") == Reading::kRefused);
  CHECK(CheckFirstBytes(Hello(""), {"10.0.0.5", 443}).reading == Reading::kDone);
  CHECK(CheckFirstBytes(Hello(ServerName("a.example")), {"10.0.0.5", 443}).reading == Reading::kRefused);
  CHECK(reading("SSH-2.0-x\r\n") == Reading::kDone);
  CHECK(reading("GET / HTTP/1.1\r\n") == Reading::kMore);
  CHECK(reading("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n") == Reading::kDone);
  CHECK(reading("GET / HTTP/1.1\r\nHost: b.example\r\n\r\n") == Reading::kRefused);
  CHECK(reading("\r\nGET / HTTP/1.1\r\nHost: b.example\r\n\r\n") == Reading::kRefused);
}

}  // namespace reprise
