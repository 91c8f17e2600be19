#include <sys/wait.h>
#include <unistd.h>

#include "support/http_client.h"
#include "support/test.h"
#include "wire/gate.h"

namespace reprise::peer_user_test {
namespace {

struct Listener {
  explicit Listener(bool v6 = false) : fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in v4_address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    sockaddr_in6 v6_address{};
    v6_address.sin6_family = AF_INET6;
    v6_address.sin6_addr = in6addr_loopback;
    auto* address = v6 ? reinterpret_cast<sockaddr*>(&v6_address) : reinterpret_cast<sockaddr*>(&v4_address);
    socklen_t size = v6 ? sizeof v6_address : sizeof v4_address;
    usable = ::bind(fd, address, size) == 0 && ::listen(fd, 8) == 0;
    ::getsockname(fd, address, &size);
    port = ntohs(v6 ? v6_address.sin6_port : v4_address.sin_port);
  }
  ~Listener() { ::close(fd); }
  int Accept() const { return ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC); }
  int fd, port = 0;
  bool usable = false;
};

}  // namespace

TEST_CASE("PeerUsers: trusts our own process over IPv4 and IPv6", "[wire]") {
  PeerUsers users;
  for (const bool v6 : {false, true}) {
    const Listener listener(v6);
    if (!listener.usable) continue;  // this machine has no ::1
    const TestClient client(listener.port, v6);
    const int accepted = listener.Accept();
    CHECK(users.Identify(accepted) == Peer::kTrusted);
    ::close(accepted);
  }
}

TEST_CASE("PeerUsers: a socket that no process holds any more is not root's", "[wire]") {
  PeerUsers users;
  const Listener listener;
  TestClient client(listener.port);
  const int accepted = listener.Accept();
  client.Close();
  CHECK(users.Identify(accepted) == Peer::kUnknown);
  ::close(accepted);
}

TEST_CASE("PeerUsers: reports another user as foreign", "[wire]") {
  if (::geteuid() != 0) return;  // only root can change its user
  PeerUsers users;
  const Listener listener;
  int done[2];
  REQUIRE(::pipe(done) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    const TestClient client(listener.port);
    char byte;
    ::close(done[1]);
    (void)!::read(done[0], &byte, 1);  // until the parent has looked
    ::_exit(0);
  }
  const int accepted = listener.Accept();
  CHECK(users.Identify(accepted) == Peer::kForeign);
  ::close(done[1]);
  ::close(done[0]);
  ::close(accepted);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("PeerUsers: reports a descriptor without a connection as unknown", "[wire]") {
  PeerUsers users;
  const Listener listener;
  CHECK(users.Identify(listener.fd) == Peer::kUnknown);
  CHECK(users.Identify(-1) == Peer::kUnknown);
}

}  // namespace reprise::peer_user_test
