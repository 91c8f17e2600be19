#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "people/authenticator.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "wire/message.h"

namespace reprise {

// The authority of a URL taken apart: "example.org:8443", "[::1]".
struct Authority {
  std::string host;                        // as it was written; an IPv6 address with its brackets
  std::optional<int> port = std::nullopt;  // 1 to 65535
};
// nullopt if it is none: a user, a path, blanks, a wildcard, a port with a sign or leading zeros.
std::optional<Authority> ParseAuthority(std::string_view text);

// A name under which clients reach this server though it does not listen under it: behind a proxy, a tunnel, a mapped
// port. Without a port, any.
using PublicHost = Authority;
// kInvalidArgument says what is wanted, without naming the setting.
Result<PublicHost> ParsePublicHost(std::string_view text);

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

// Decides whether a request may be looked at at all (DESIGN section 9): on every route and method, before any of its
// body is read. Immutable, thread-safe.
class Gate {
 public:
  struct Options {
    int port = 0;
    std::vector<std::string> hosts = {};  // names of this server beside 127.0.0.1, localhost and [::1]
    // Listening on every address: any literal address may be the host. A rebound name still may not.
    bool any_address = false;
    // Names by which clients reach this server through something else; a request may also come from their pages.
    std::vector<PublicHost> public_hosts = {};
    std::optional<std::string> token = {};       // if set, every request must show it; with `people`: the operator's
    std::shared_ptr<Authenticator> people = {};  // null: one user, whoever passes
  };
  explicit Gate(Options options);

  // What a browser has instead of `token`: the page key, which is the token, sealed, and stays in the page's own
  // storage, and a cookie, which is the key to it. Browsers send a cookie to every port of a host, to programs of
  // others too; a page of another port has no page key. nullopt: it is no token of this server; neither is set where
  // this server has no token. May read a file.
  struct Session {
    std::string set_cookie, page_key;
  };
  std::optional<Session> LogIn(std::string_view token, const RequestHead& head) const;

  // The refusal, or nullopt if the request may pass. The page itself may be had without a token: it asks for it.
  std::optional<Reply> Check(const RequestHead& head, Peer peer) const;

  // Whether somebody who was let in would still be, as far as that can be told at once.
  bool StillCounts(const Principal& principal) const {
    if (principal.until && *principal.until <= Now()) return false;
    return !people_ || principal.token_id.empty() || people_->Counts(principal.token_id);
  }

  // Who sends a request that may pass, or nullopt: then `done` is called, once, by another thread. kUnauthenticated,
  // kUnavailable as Authenticator.
  std::optional<Result<Principal>> Identify(const RequestHead& head, Authenticator::Done done) const;

 private:
  bool IsOurs(std::string_view host_and_port) const;
  bool IsPublic(const Authority& authority, int default_port) const;
  bool IsOwnOrigin(std::string_view origin, const RequestHead& head) const;
  std::optional<Reply> CheckHost(const RequestHead& head) const;
  std::optional<Reply> CheckOrigin(const RequestHead& head) const;
  std::optional<std::string> ShownToken(const RequestHead& head) const;
  std::optional<Reply> CheckCaller(const RequestHead& head, Peer peer) const;

  const int port_;
  const bool any_address_;
  std::vector<std::string> authorities_;  // lower case "host:port"
  std::vector<PublicHost> public_hosts_;
  std::optional<std::string> token_;
  const std::shared_ptr<Authenticator> people_;
  const std::string cookie_name_;
};

inline constexpr std::string_view kPageKeyHeader = "Reprise-Page-Key";

}  // namespace reprise
