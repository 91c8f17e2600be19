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

// A token for scripts, and for people without an identity provider. Only its user has the token; we store its digest.
struct ApiToken {
  std::string id;    // "token_" and 12 hex digits, for revoking it
  std::string name;  // its purpose in the owner's words; may be empty
  Principal principal;
  std::string digest;
  Timestamp created_at;
  std::optional<Timestamp> expires_at{};  // nullopt: never
};

inline constexpr std::string_view kApiTokenPrefix = "reprise_";  // of all, so that leaked tokens can be found

std::string DigestOfToken(std::string_view token);

// When tokens were last used, by their ids.
using TokenUses = std::map<std::string, Timestamp>;

// The store of API tokens. Thread-safe.
class ApiTokenStore {
 public:
  virtual ~ApiTokenStore() = default;

  // Identifies a state of all tokens.
  struct Version {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Version&) const = default;
  };
  struct Content {
    Version version;
    std::vector<ApiToken> tokens;
  };

  // The version as far as it can be told without blocking. If it is not the one that Read returned, call Read again.
  virtual Version Look() const = 0;
  // Whether Look sees every change. If not, an unknown token may have been added since.
  virtual bool is_exact() const = 0;
  // May block. On kUnavailable the tokens read before still count, on other errors none do. The message is for the
  // operator.
  virtual Result<Content> Read() = 0;

  struct Made {
    ApiToken token;
    std::string text;  // the token itself, stored nowhere else
  };
  virtual Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at) = 0;
  // kNotFound if there is no token with this id.
  virtual Result<ApiToken> Revoke(std::string_view id) = 0;

  virtual TokenUses ReadUses() = 0;  // empty if they cannot be read
  virtual Result<void> WriteUses(const TokenUses& uses) = 0;

 protected:
  // Makes a token. kInvalidArgument if a name is invalid.
  static Result<Made> Make(Principal principal, std::string name, std::optional<Timestamp> expires_at);
};

// A file (0600, schemas/api_tokens.schema.json) that is replaced as a whole.
class ApiTokenFile final : public ApiTokenStore {
 public:
  // `uses_path` is a separate file for the times of use, because the server writes that one and people the other.
  // Empty: do not keep them.
  explicit ApiTokenFile(std::string path, std::string uses_path = {})
      : path_(std::move(path)), uses_path_(std::move(uses_path)) {}

  Version Look() const override;  // one system call; all zero if there is no file
  bool is_exact() const override { return true; }
  // No tokens if there is no file. kForbidden if others could have written it, kCorruption.
  Result<Content> Read() override;
  Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at) override;
  Result<ApiToken> Revoke(std::string_view id) override;
  TokenUses ReadUses() override;
  Result<void> WriteUses(const TokenUses& uses) override;

 private:
  Result<void> Write(const std::vector<ApiToken>& tokens) const;

  const std::string path_, uses_path_;
};

}  // namespace reprise
