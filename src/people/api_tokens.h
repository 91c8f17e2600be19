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

// A token that scripts, and people without an identity provider, show: nobody keeps it but who uses it. What is kept
// is its digest.
struct ApiToken {
  std::string id;    // "token_" and 12 hex digits: what it is revoked by
  std::string name;  // what it is for, in its owner's words; may be empty
  Principal principal;
  std::string digest;
  Timestamp created_at;
  std::optional<Timestamp> expires_at{};  // nullopt: never
};

inline constexpr std::string_view kApiTokenPrefix = "reprise_";  // of each, so that one that was published is found

std::string DigestOfToken(std::string_view token);

// When tokens were last used, by their ids.
using TokenUses = std::map<std::string, Timestamp>;

// The API tokens that there are. Thread-safe.
class ApiTokenStore {
 public:
  virtual ~ApiTokenStore() = default;

  // What tells one state of all tokens from another.
  struct Version {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Version&) const = default;
  };
  struct Content {
    Version version;
    std::vector<ApiToken> tokens;
  };

  // The state as far as it can be told at once; one that Read has not given: look there.
  virtual Version Look() const = 0;
  // Whether Look knows of every change: else a token that is not known may have been added since.
  virtual bool is_exact() const = 0;
  // May block. kUnavailable: what was read before still counts. Else none counts; the message is for the operator.
  virtual Result<Content> Read() = 0;

  struct Made {
    ApiToken token;
    std::string text;  // the token itself, which is nowhere else
  };
  virtual Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at) = 0;
  // kNotFound: there is no token of this id.
  virtual Result<ApiToken> Revoke(std::string_view id) = 0;

  virtual TokenUses ReadUses() = 0;  // none if they cannot be read
  virtual Result<void> WriteUses(const TokenUses& uses) = 0;

 protected:
  // A new one. kInvalidArgument: these are no names.
  static Result<Made> Make(Principal principal, std::string name, std::optional<Timestamp> expires_at);
};

// A file (0600, schemas/api_tokens.schema.json) that is replaced as a whole.
class ApiTokenFile final : public ApiTokenStore {
 public:
  // `uses_path`: of a file of its own for when they were used, as the server writes this and people the other. Empty:
  // nobody wants to know.
  explicit ApiTokenFile(std::string path, std::string uses_path = {})
      : path_(std::move(path)), uses_path_(std::move(uses_path)) {}

  Version Look() const override;  // one system call; all zero: there is no file
  bool is_exact() const override { return true; }
  // None if there is no file. kForbidden if others could have written it, kCorruption.
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
