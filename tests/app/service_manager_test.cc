#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "app/process.h"
#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::service_manager_test {
namespace {

// What the environment says to the process with this id. The only tests that edit it: the protocol is about nothing
// else.
void SetVariables(const std::string& pid, const char* count) {
  ::setenv("LISTEN_PID", pid.c_str(), 1);
  ::setenv("LISTEN_FDS", count, 1);
  ::setenv("LISTEN_FDNAMES", "reprise.socket", 1);
}
bool AnyVariable() {
  return std::getenv("LISTEN_PID") != nullptr || std::getenv("LISTEN_FDS") != nullptr ||
         std::getenv("LISTEN_FDNAMES") != nullptr || std::getenv("NOTIFY_SOCKET") != nullptr;
}

}  // namespace

TEST_CASE("ServiceManager: sockets for another process are not ours, and the variables go", "[app]") {
  SetVariables(std::to_string(::getpid() + 1), "1");
  const auto manager = ServiceManager::FromEnvironment();
  REQUIRE(manager);
  CHECK(manager->sockets.empty());
  CHECK_FALSE(AnyVariable());
}

TEST_CASE("ServiceManager: a wrong number and descriptors that are not there are named", "[app]") {
  for (const char* count : {"", "x", "-1", "1x", "99999999999"}) {
    SetVariables(std::to_string(::getpid()), count);
    INFO(count);
    const auto manager = ServiceManager::FromEnvironment();
    REQUIRE_FALSE(manager);
    CHECK(manager.error().message == "LISTEN_FDS must be a number of descriptors");
    CHECK_FALSE(AnyVariable());
  }
}

TEST_CASE("ServiceManager: tells what it is asked to tell", "[app]") {
  const TempDirectory folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder.File("notify");
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd listener(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);

  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  const auto manager = ServiceManager::FromEnvironment();
  REQUIRE(manager);
  CHECK_FALSE(AnyVariable());
  manager->Tell("READY=1");
  std::array<char, 64> told{};
  const ssize_t size = ::recv(listener.get(), told.data(), told.size(), MSG_DONTWAIT);
  REQUIRE(size > 0);
  CHECK(std::string(told.data(), static_cast<std::size_t>(size)) == "READY=1");
}

TEST_CASE("ServiceManager: an address of the kernel's name space", "[app]") {
  const std::string name = "@reprise-test-" + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  address.sun_path[0] = '\0';
  const UniqueFd listener(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
  ServiceManager manager;
  manager.notify_address = name;
  manager.Tell("STOPPING=1");
  std::array<char, 64> told{};
  CHECK(::recv(listener.get(), told.data(), told.size(), MSG_DONTWAIT) == 10);
}

}  // namespace reprise::test::service_manager_test
