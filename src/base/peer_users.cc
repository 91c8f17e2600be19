#include "base/peer_users.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/logging.h"

namespace reprise {

namespace {

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

void CopyAddress(const sockaddr_storage& from, __be32 (&address)[4], __be16& port) {
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    address[0] = v4.sin_addr.s_addr;
    port = v4.sin_port;
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(address, &v6.sin6_addr, sizeof address);
    port = v6.sin6_port;
  }
}

struct Query {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

}  // namespace

PeerUsers::PeerUsers() : netlink_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {
  if (!netlink_) {
    LogWarning("cannot tell which user a connection comes from; only requests with a token will be served",
               {{"detail", std::strerror(errno)}});
    return;
  }
  // The kernel answers during send, so this limit should never count. It is here because this thread serves all
  // clients.
  const timeval limit{.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(netlink_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

Peer PeerUsers::Identify(int fd) {
  sockaddr_storage theirs{}, ours{};
  socklen_t theirs_size = sizeof theirs, ours_size = sizeof ours;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &theirs_size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&ours), &ours_size) != 0) {
    return Peer::kUnknown;
  }
  if (!IsLoopback(theirs)) return Peer::kRemote;
  const auto owner = OwnerOf(theirs, ours);
  if (!owner) return Peer::kUnknown;
  return *owner == 0 || *owner == ::geteuid() ? Peer::kTrusted : Peer::kForeign;
}

std::optional<uid_t> PeerUsers::OwnerOf(const sockaddr_storage& theirs, const sockaddr_storage& ours) {
  if (!netlink_) return std::nullopt;
  Query query{};
  query.header.nlmsg_len = sizeof query;
  query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  query.header.nlmsg_flags = NLM_F_REQUEST;
  query.header.nlmsg_seq = ++sequence_;
  query.request.sdiag_family = static_cast<__u8>(theirs.ss_family);
  query.request.sdiag_protocol = IPPROTO_TCP;
  query.request.idiag_states = ~0U;
  query.request.id.idiag_cookie[0] = query.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  CopyAddress(theirs, query.request.id.idiag_src, query.request.id.idiag_sport);
  CopyAddress(ours, query.request.id.idiag_dst, query.request.id.idiag_dport);
  if (::send(netlink_.get(), &query, sizeof query, 0) != static_cast<ssize_t>(sizeof query)) return std::nullopt;

  alignas(nlmsghdr) std::array<char, 4096> buffer;
  while (true) {
    const ssize_t size = ::recv(netlink_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
    const auto* header = reinterpret_cast<const nlmsghdr*>(buffer.data());
    if (header->nlmsg_seq != sequence_) continue;  // a late answer to an earlier request
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
    if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return std::nullopt;
    const auto* answer = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
    // The kernel reports user 0 for a socket that no process holds any more. This is not root.
    if (answer->idiag_inode == 0) return std::nullopt;
    return answer->idiag_uid;
  }
}

}  // namespace reprise
