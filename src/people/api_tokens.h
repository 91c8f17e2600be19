#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// A token that scripts, and people without an identity provider, show: nobody keeps it but who uses it. What is kept are
// digests, of the token and of the cookie that a browser has for it.
struct ApiToken {
  std::string id;    // "token_" and 12 hex digits: what it is revoked by
  std::string name;  // what it is for, in its owner's words; may be empty
  Principal principal;
  std::string digest, cookie_digest;
  Timestamp created_at;
  std::optional<Timestamp> expires_at{};  // nullopt: never
};

inline constexpr std::string_view kApiTokenPrefix = "reprise_";  // of each, so that one that was published is found

// The cookie's value for this token: who has it cannot tell the token.
std::string CookieOf(std::string_view token);
std::string DigestOfToken(std::string_view token);
std::string DigestOfCookie(std::string_view cookie);

// The API tokens that there are: a file (0600, schemas/api_tokens.schema.json) that is replaced as a whole.
class ApiTokenFile {
 public:
  explicit ApiTokenFile(std::string path) : path_(std::move(path)) {}

  // What tells one version of the file from another.
  struct Version {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Version&) const = default;
  };
  struct Content {
    Version version;
    std::vector<ApiToken> tokens;
  };

  // One system call. All zero: there is no file.
  Version Look() const;
  // None if there is no file. kForbidden if others could have written it, kCorruption; the message is for the operator.
  Result<Content> Read() const;

  struct Made {
    ApiToken token;
    std::string text;  // the token itself, which is nowhere else
  };
  Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at);
  // kNotFound: there is no token of this id.
  Result<ApiToken> Revoke(std::string_view id);

 private:
  Result<void> Write(const std::vector<ApiToken>& tokens) const;

  const std::string path_;
};

// When tokens were last used, by their ids; kept in a file of its own, as the server writes this and people the other.
using TokenUses = std::map<std::string, Timestamp>;
TokenUses ReadTokenUses(const std::string& path);
Result<void> WriteTokenUses(const std::string& path, const TokenUses& uses);

}  // namespace reprise
