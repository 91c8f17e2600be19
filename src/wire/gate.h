#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/peer_users.h"
#include "people/authenticator.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "wire/message.h"

namespace reprise {

// The parts of a URL's authority, such as "example.org:8443" or "[::1]".
struct Authority {
  std::string host;                        // as written; an IPv6 address keeps its brackets
  std::optional<int> port = std::nullopt;  // 1 to 65535
};
// nullopt if `text` is no authority: it has a user, a path, blanks, a wildcard, or a port with a sign or leading zeros.
std::optional<Authority> ParseAuthority(std::string_view text);

// A name by which clients reach this server although it does not listen on it: through a proxy, a tunnel, a mapped
// port. Without a port it stands for any port.
using PublicHost = Authority;
// kInvalidArgument: the message says which form is expected, but does not name the setting.
Result<PublicHost> ParsePublicHost(std::string_view text);

// Decides whether a request may be looked at, on every route and method, before any of its body is read. Immutable,
// thread-safe.
class Gate {
 public:
  struct Options {
    int port = 0;
    std::vector<std::string> hosts = {};  // this server's names besides 127.0.0.1, localhost and [::1]
    // The server listens on every address, so any literal address may be the host. A rebound name still may not.
    bool any_address = false;
    // Names by which clients reach this server through a proxy or tunnel. Their pages may send requests too.
    std::vector<PublicHost> public_hosts = {};
    std::optional<std::string> token = {};       // every request must show it; with `people`: the operator's
    std::shared_ptr<Authenticator> people = {};  // null: all who pass are one user
  };
  explicit Gate(Options options);

  // What a browser keeps instead of `token`: the page key, which is the sealed token and stays in the page's own
  // storage, and a cookie with the key that opens it. Both are needed, because browsers send a cookie to every port of
  // a host, even to other users' programs, but pages of another port cannot read the page key. LogIn returns nullopt if
  // `token` is no token of this server, and an empty Session if the server has none. It may read a file.
  struct Session {
    std::string set_cookie, page_key;
  };
  std::optional<Session> LogIn(std::string_view token, const RequestHead& head) const;

  // The refusal, or nullopt if the request may pass. The page itself needs no token, because it asks for it.
  std::optional<Reply> Check(const RequestHead& head, Peer peer) const;

  // Whether the user who runs this server sent an admitted request, from a program or page on this machine: not another
  // user of the machine, not through a proxy or tunnel with a public name, and not as a tenant.
  bool IsLocal(const RequestHead& head, Peer peer, const Principal& principal) const;

  // Whether an admitted principal still counts, as far as this is known without waiting.
  bool StillCounts(const Principal& principal) const {
    if (principal.until && *principal.until <= Now()) return false;
    return !people_ || principal.token_id.empty() || people_->Counts(principal.token_id);
  }

  // The sender of a request that passed Check, or nullopt: then another thread calls `done` once. Fails with
  // kUnauthenticated or kUnavailable like Authenticator.
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
