#include "process/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace reprise {

namespace {

constexpr int kMaxWaiting = 128;

int NumberIn(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

UniqueFd Listener(int port) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool ok = listener &&
                  ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                  ::listen(listener.get(), kMaxWaiting) == 0;
  return ok ? std::move(listener) : UniqueFd();
}

// A message of one byte with room for descriptors beside it.
struct Parcel {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxListeners * sizeof(int))> room{};
  msghdr message{};
  explicit Parcel(std::size_t count) {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  }
};

bool Send(int socket, const std::vector<UniqueFd>& listeners) {
  Parcel parcel(listeners.size());
  cmsghdr* const head = CMSG_FIRSTHDR(&parcel.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(listeners.size() * sizeof(int));
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    const int fd = listeners[i].get();
    std::memcpy(CMSG_DATA(head) + i * sizeof fd, &fd, sizeof fd);
  }
  return ::sendmsg(socket, &parcel.message, MSG_NOSIGNAL) == 1;
}

}  // namespace

std::vector<std::string> ListenersBefore(int program, int socket, const std::vector<std::uint16_t>& ports) {
  std::vector<std::string> words = {"/proc/self/fd/" + std::to_string(program), kOpenListeners, std::to_string(program),
                                    std::to_string(socket)};
  for (const std::uint16_t port : ports) words.push_back(std::to_string(port));
  words.emplace_back("--");
  return words;
}

int OpenListeners(int argc, char** argv) {
  constexpr int kProgram = 2, kSocket = 3, kPorts = 4, kFailed = 126;
  if (argc <= kPorts) return kFailed;
  int at = kPorts;
  {
    const UniqueFd program(NumberIn(argv[kProgram])), socket(NumberIn(argv[kSocket]));
    std::vector<UniqueFd> listeners;
    for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
      listeners.push_back(Listener(NumberIn(argv[at])));
      if (!listeners.back() || listeners.size() > kMaxListeners) return kFailed;
    }
    if (!Send(socket.get(), listeners)) return kFailed;
  }
  if (at + 1 >= argc) return kFailed;
  ::execv(argv[at + 1], argv + at + 1);
  std::perror(argv[at + 1]);
  return kFailed;
}

std::optional<std::vector<UniqueFd>> TakeListeners(int socket, std::size_t count, int stop) {
  std::array<pollfd, 2> waits{{{socket, POLLIN, 0}, {stop, POLLIN, 0}}};
  while (::poll(waits.data(), waits.size(), -1) < 0 && errno == EINTR) {
  }
  if (waits[1].revents != 0) return std::nullopt;
  Parcel parcel(kMaxListeners);
  if (::recvmsg(socket, &parcel.message, MSG_CMSG_CLOEXEC) != 1) return std::nullopt;
  std::vector<UniqueFd> listeners;
  for (cmsghdr* head = CMSG_FIRSTHDR(&parcel.message); head != nullptr; head = CMSG_NXTHDR(&parcel.message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
      listeners.emplace_back(fd);
    }
  }
  if (listeners.size() != count) return std::nullopt;
  return listeners;
}

}  // namespace reprise
