#include "process/listeners.h"

#include <arpa/inet.h>
#include <fcntl.h>
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
#include <utility>

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

bool Send(int socket, const std::vector<UniqueFd>& descriptors, int flags = 0) {
  Parcel parcel(descriptors.size());
  cmsghdr* const head = CMSG_FIRSTHDR(&parcel.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const int fd = descriptors[i].get();
    std::memcpy(CMSG_DATA(head) + i * sizeof fd, &fd, sizeof fd);
  }
  return ::sendmsg(socket, &parcel.message, MSG_NOSIGNAL | flags) == 1;
}

std::vector<UniqueFd> Receive(int socket, int flags) {
  Parcel parcel(kMaxListeners);
  std::vector<UniqueFd> descriptors;
  if (::recvmsg(socket, &parcel.message, MSG_CMSG_CLOEXEC | flags) != 1) return descriptors;
  for (cmsghdr* head = CMSG_FIRSTHDR(&parcel.message); head != nullptr; head = CMSG_NXTHDR(&parcel.message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

// Leaves out what the system does not have.
std::vector<UniqueFd> Present(UniqueFd first, UniqueFd second) {
  std::vector<UniqueFd> present;
  for (UniqueFd* each : {&first, &second}) {
    if (*each) present.push_back(std::move(*each));
  }
  return present;
}

// As many as the system takes: the command runs without them, too.
void SendWaysIn(int socket) {
  constexpr int kList = O_RDONLY | O_CLOEXEC, kTcp = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  std::vector<UniqueFd> parcel =
      Present(UniqueFd(::open("/proc/self/net/tcp", kList)), UniqueFd(::open("/proc/self/net/tcp6", kList)));
  for (std::size_t sent = 0; sent <= kMaxWaysIn && !parcel.empty(); ++sent) {
    if (!Send(socket, parcel, MSG_DONTWAIT)) return;
    parcel = Present(UniqueFd(::socket(AF_INET, kTcp, 0)), UniqueFd(::socket(AF_INET6, kTcp, 0)));
  }
}

}  // namespace

std::vector<std::string> ListenersBefore(const InnerDescriptors& inner, const std::vector<std::uint16_t>& ports) {
  std::vector<std::string> words = {"/proc/self/fd/" + std::to_string(inner.program), kOpenListeners};
  for (const int each : {inner.program, inner.listeners, inner.ways_in}) words.push_back(std::to_string(each));
  for (const std::uint16_t port : ports) words.push_back(std::to_string(port));
  words.emplace_back("--");
  return words;
}

int OpenListeners(int argc, char** argv) {
  constexpr int kProgram = 2, kSocket = 3, kWaysIn = 4, kPorts = 5, kFailed = 126;
  if (argc <= kPorts) return kFailed;
  int at = kPorts;
  {
    const UniqueFd program(NumberIn(argv[kProgram])), socket(NumberIn(argv[kSocket])), ways_in(NumberIn(argv[kWaysIn]));
    std::vector<UniqueFd> listeners;
    for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
      listeners.push_back(Listener(NumberIn(argv[at])));
      if (!listeners.back() || listeners.size() > kMaxListeners) return kFailed;
    }
    if (socket && !Send(socket.get(), listeners)) {
      std::perror("the sandbox cannot be given its network");
      return kFailed;
    }
    if (ways_in) SendWaysIn(ways_in.get());
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
  std::vector<UniqueFd> listeners = Receive(socket, 0);
  if (listeners.size() != count) return std::nullopt;
  return listeners;
}

std::vector<UniqueFd> TakeWayIn(int ways_in) { return Receive(ways_in, MSG_DONTWAIT); }

}  // namespace reprise
