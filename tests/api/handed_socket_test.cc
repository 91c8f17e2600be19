// Sockets on which a service manager listens already.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server_fixture.h"

namespace reprise::test::handed_socket_test {
namespace {

// A TCP socket bound to any free port, or to `port`.
UniqueFd Bound(const char* address, int port = 0) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(::inet_pton(AF_INET, address, &name.sin_addr) == 1);
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  return fd;
}
UniqueFd Listening(const char* address, int port = 0) {
  UniqueFd fd = Bound(address, port);
  REQUIRE(::listen(fd.get(), 1) == 0);
  return fd;
}
int PortOf(const UniqueFd& fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
  return ntohs(name.sin_port);
}

std::string Refusal(UniqueFd first, UniqueFd second = {}) {
  ServerFixture f;
  std::vector<UniqueFd> sockets;
  sockets.push_back(std::move(first));
  if (second) sockets.push_back(std::move(second));
  const auto opened = OpenServer(*f.engine, {}, std::move(sockets));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::kInvalidArgument);
  return opened.error().message;
}

}  // namespace

TEST_CASE("HttpServer: accepts on sockets that were handed over and ignores host and port", "[api]") {
  ServerFixture f;
  std::vector<UniqueFd> sockets;
  sockets.push_back(Listening("127.0.0.2"));
  const int port = PortOf(sockets[0]);
  sockets.push_back(Listening("127.0.0.1", port));
  ServerOptions options;
  options.host = "127.0.0.9";
  options.port = 1;
  const auto server = OpenServer(*f.engine, options, std::move(sockets));
  REQUIRE(server);
  CHECK((*server)->host() == "127.0.0.2");
  CHECK((*server)->port() == port);
  CHECK(Ask(port, "GET", "/healthz", {}, {}).status == 200);
}

TEST_CASE("HttpServer: refuses a socket that it cannot serve safely", "[api]") {
  CHECK(Refusal(Bound("127.0.0.1")).find("is not a TCP socket that listens") != std::string::npos);
  CHECK(Refusal(UniqueFd(::dup(STDERR_FILENO))).find("is not a TCP socket that listens") != std::string::npos);
  UniqueFd local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un anywhere{};
  anywhere.sun_family = AF_UNIX;  // the kernel picks a name
  REQUIRE(::bind(local.get(), reinterpret_cast<const sockaddr*>(&anywhere), sizeof anywhere.sun_family) == 0);
  REQUIRE(::listen(local.get(), 1) == 0);
  CHECK(Refusal(std::move(local)).find("is not a TCP socket that listens") != std::string::npos);
  CHECK(Refusal(Listening("0.0.0.0")).find("listens on 0.0.0.0, which is not loopback") != std::string::npos);
  CHECK(Refusal(Listening("127.0.0.1"), Listening("127.0.0.1")).find("another port") != std::string::npos);
}

TEST_CASE("HttpServer: serves a handed socket beyond loopback if it has a token", "[api]") {
  ServerFixture f;
  std::vector<UniqueFd> sockets;
  sockets.push_back(Listening("0.0.0.0"));
  const int port = PortOf(sockets[0]);
  ServerOptions options;
  options.token = "0123456789abcdef";
  const auto server = OpenServer(*f.engine, options, std::move(sockets));
  REQUIRE(server);
  CHECK(Ask(port, "GET", "/chats", {}, {}).status == 401);
  CHECK(Ask(port, "GET", "/chats", {}, "Authorization: Bearer 0123456789abcdef\r\n").status == 200);
}

}  // namespace reprise::test::handed_socket_test
