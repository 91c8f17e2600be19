#include "support/unprivileged.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace reprise::test {
namespace {

constexpr const char* kNobody = "65534";

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

}  // namespace

pid_t StartUnprivileged(const std::vector<std::string>& command, const std::string& log) {
  std::vector<std::string> all = {"setpriv", "--pdeathsig", "QUIT"};
  if (::geteuid() == 0) all.insert(all.end(), {"--reuid", kNobody, "--regid", kNobody, "--clear-groups"});
  all.insert(all.end(), command.begin(), command.end());
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  std::vector<char*> words;
  for (const std::string& word : all) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (std::freopen(log.c_str(), "a", stdout) != nullptr) ::dup2(1, 2);
  ::execvp(words[0], words.data());
  std::_Exit(127);
}

int AwaitEnd(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

void End(pid_t pid, int signal) {
  ::kill(pid, signal);
  ::waitpid(pid, nullptr, 0);
}

void GiveToNobody(const std::string& path) {
  if (::geteuid() == 0 && ::chown(path.c_str(), 65534, 65534) != 0) throw std::runtime_error("chown " + path);
}

int FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port is free");
  }
  ::close(fd);
  return ntohs(address.sin_port);
}

bool AcceptsAt(int port) {
  const sockaddr_in address = Loopback(port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool accepts = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return accepts;
}

}  // namespace reprise::test
