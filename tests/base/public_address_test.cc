#include "base/public_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <string>

#include "support/test.h"

namespace reprise::public_address_test {
namespace {

bool IsPublic(const std::string& text) {
  sockaddr_storage storage{};
  if (text.find(':') == std::string::npos) {
    auto& address = reinterpret_cast<sockaddr_in&>(storage);
    address.sin_family = AF_INET;
    REQUIRE(::inet_pton(AF_INET, text.c_str(), &address.sin_addr) == 1);
    return IsPublicAddress(reinterpret_cast<sockaddr*>(&storage), sizeof address);
  }
  auto& address = reinterpret_cast<sockaddr_in6&>(storage);
  address.sin6_family = AF_INET6;
  REQUIRE(::inet_pton(AF_INET6, text.c_str(), &address.sin6_addr) == 1);
  return IsPublicAddress(reinterpret_cast<sockaddr*>(&storage), sizeof address);
}

TEST_CASE("Public address: true for the internet's", "[net]") {
  for (const char* address : {"1.1.1.1",         "8.8.8.8",          "9.255.255.255",
                              "11.0.0.0",        "100.63.255.255",   "100.128.0.0",
                              "126.255.255.255", "128.0.0.1",        "169.253.255.255",
                              "172.15.255.255",  "172.32.0.0",       "192.167.255.255",
                              "192.169.0.0",     "198.17.255.255",   "198.20.0.0",
                              "223.255.255.255", "2606:4700::1111",  "2001:4860:4860::8888",
                              "2a00::1",         "64:ff9b::8.8.8.8", "2002:808:808::1"}) {
    INFO(address);
    CHECK(IsPublic(address));
  }
}

TEST_CASE("Public address: false for all special ranges", "[net]") {
  for (const char* address : {"0.0.0.0",
                              "0.1.2.3",
                              "10.0.0.1",
                              "10.255.255.255",
                              "100.64.0.1",
                              "100.127.255.255",
                              "127.0.0.1",
                              "127.255.255.255",
                              "169.254.169.254",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.0.0.8",
                              "192.0.2.1",
                              "192.88.99.1",
                              "192.168.1.1",
                              "198.18.0.1",
                              "198.19.255.255",
                              "198.51.100.1",
                              "203.0.113.1",
                              "224.0.0.1",
                              "239.255.255.255",
                              "240.0.0.1",
                              "255.255.255.255",
                              "::",
                              "::1",
                              "::127.0.0.1",
                              "::8.8.8.8",
                              "::ffff:127.0.0.1",
                              "::ffff:8.8.8.8",
                              "64:ff9b::127.0.0.1",
                              "64:ff9b::10.0.0.1",
                              "64:ff9b:1::1",
                              "100::1",
                              "2001::1",
                              "2001:1ff::1",
                              "2001:db8::1",
                              "2002:7f00:1::1",
                              "2002:a00:1::1",
                              "3fff::1",
                              "fc00::1",
                              "fdff::1",
                              "fe80::1",
                              "fec0::1",
                              "ff02::1",
                              "4000::1"}) {
    INFO(address);
    CHECK_FALSE(IsPublic(address));
  }
}

TEST_CASE("Public address: false for other families and short addresses", "[net]") {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  CHECK_FALSE(IsPublicAddress(reinterpret_cast<sockaddr*>(&local), sizeof local));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, "8.8.8.8", &address.sin_addr);
  CHECK_FALSE(IsPublicAddress(reinterpret_cast<sockaddr*>(&address), sizeof(sockaddr) - 1));
}

TEST_CASE("HostOf: the host of a URL alone", "[net]") {
  CHECK(HostOf("http://example.org") == "example.org");
  CHECK(HostOf("https://me:secret@example.org:8443/a:b@c?d=e@f#g") == "example.org");
  CHECK(HostOf("http://[::1]:8080/") == "[::1]");
  CHECK(HostOf("http://[::1]") == "[::1]");
  CHECK(HostOf("http://127.0.0.1:1@example.org/") == "example.org");
  CHECK(HostOf("example.org:80") == "example.org");
  CHECK(HostOf("https://").empty());
}

TEST_CASE("IsLoopbackHost: only what this machine alone reaches", "[net]") {
  for (const char* host : {"localhost", "LocalHost", "127.0.0.1", "127.255.0.3", "::1", "[::1]", "[0:0:0:0:0:0:0:1]"}) {
    INFO(host);
    CHECK(IsLoopbackHost(host));
  }
  for (const char* host : {"", "127", "127.1", "127.0.0.1.example.org", "127.example.org", "localhost.example.org",
                           "128.0.0.1", "0.0.0.0", "::", "[::]", "[::1", "::ffff:127.0.0.1", "[]", "10.0.0.1"}) {
    INFO(host);
    CHECK_FALSE(IsLoopbackHost(host));
  }
}

TEST_CASE("WithoutUser: nothing but user and password is left out", "[base]") {
  CHECK(WithoutUser("https://ann:a@b@c.test/d@e?f@g") == "https://c.test/d@e?f@g");
  CHECK(WithoutUser("//ann@c.test") == "//c.test");
  for (const char* same : {"", "/login?next=a@b", "https://c.test/a//b@c", "a@b"}) CHECK(WithoutUser(same) == same);
}

}  // namespace
}  // namespace reprise::public_address_test
