#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/system.h"

namespace reprise {

// The user at the other end of a connection, as far as the operating system knows.
enum class Peer {
  kTrusted,  // on this machine, the same user as this process or root
  kForeign,  // on this machine, another user
  kUnknown,  // the kernel could not tell, or was not asked
  kRemote,   // not on this machine
};

// Asks the kernel (NETLINK_SOCK_DIAG) which user owns the other end of a loopback connection. Not thread-safe.
class PeerUsers {
 public:
  PeerUsers();

  // Tells which user holds the other end of the connected socket `fd`. Exchanges one message with the kernel, which
  // takes microseconds.
  Peer Identify(int fd);

 private:
  std::optional<uid_t> OwnerOf(const sockaddr_storage& theirs, const sockaddr_storage& ours);

  UniqueFd netlink_;
  std::uint32_t sequence_ = 0;
};

}  // namespace reprise
