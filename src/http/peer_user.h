#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/unique_fd.h"

namespace reprise {

// Who is at the other end of a connection, as far as the operating system says.
enum class Peer {
  kTrusted,  // on this machine, the same user as this process or root
  kForeign,  // on this machine, another user
  kUnknown,  // on this machine, but it could not be found out
  kRemote,   // not on this machine
};

// Asks the kernel (NETLINK_SOCK_DIAG) which user owns the other end of a loopback connection. Not thread-safe.
class PeerUsers {
 public:
  PeerUsers();

  // Who holds the other end of connected socket `fd`. One exchange with the kernel, microseconds.
  Peer Identify(int fd);

 private:
  std::optional<uid_t> OwnerOf(const sockaddr_storage& theirs, const sockaddr_storage& ours);

  UniqueFd netlink_;
  std::uint32_t sequence_ = 0;
};

}  // namespace reprise
