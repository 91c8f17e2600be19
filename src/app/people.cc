#include "app/people.h"

#include <chrono>
#include <optional>
#include <stop_token>
#include <utility>

#include "app/prompt_folder.h"
#include "base/try.h"
#include "people/issuer_keys.h"
#include "postgres/database.h"
#include "postgres/postgres_api_tokens.h"
#include "postgres/schema.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kFetchTimeout{5'000};

IssuerOptions IssuerOf(const AuthOptions& auth) {
  return {.issuer = auth.issuer,
          .audience = auth.audience,
          .org_claim = auth.org_claim,
          .roles_claim = auth.roles_claim,
          .admin_role = auth.admin_role};
}

}  // namespace

std::string TokensFileOf(const Options& options) {
  return options.auth.tokens_file.empty() ? ConfigDirectoryOf(options) + "/tokens.json" : options.auth.tokens_file;
}

std::string TokenUsesFileOf(const Options& options) { return options.data_dir + "/.token_uses"; }

namespace {

// With its own connection to the database.
class TokensApart final : public ApiTokenStore {
 public:
  explicit TokensApart(std::unique_ptr<Database> database) : database_(std::move(database)), tokens_(*database_) {}
  Version Look() const override { return tokens_.Look(); }
  bool is_exact() const override { return tokens_.is_exact(); }
  Result<Content> Read() override { return tokens_.Read(); }
  Result<Made> Add(Principal principal, std::string name, std::optional<Timestamp> expires_at) override {
    return tokens_.Add(std::move(principal), std::move(name), expires_at);
  }
  Result<ApiToken> Revoke(std::string_view id) override { return tokens_.Revoke(id); }
  TokenUses ReadUses() override { return tokens_.ReadUses(); }
  Result<void> WriteUses(const TokenUses& uses) override { return tokens_.WriteUses(uses); }

 private:
  const std::unique_ptr<Database> database_;
  PostgresApiTokens tokens_;
};

}  // namespace

Result<std::shared_ptr<ApiTokenStore>> OpenTokens(const Options& options) {
  if (options.store.type == StoreOptions::Type::kFiles) {
    return std::make_shared<ApiTokenFile>(TokensFileOf(options), TokenUsesFileOf(options));
  }
  auto database = TRY(Database::Open({.url = options.store.url}));
  TRY(CheckSchema(*database));
  return std::make_shared<TokensApart>(std::move(database));
}

std::shared_ptr<Authenticator> MakeAuthenticator(const Options& options, Transport& transport,
                                                 std::shared_ptr<ApiTokenStore> tokens) {
  if (!options.auth.has_people()) return nullptr;
  Authenticator::Options people{.tokens = std::move(tokens)};
  if (options.auth.type == AuthOptions::Type::kOidc) {
    people.issuer = IssuerOf(options.auth);
    people.fetch_keys = [&transport, issuer = options.auth.issuer](std::stop_token stop) {
      return FetchIssuerKeys(transport, issuer, kFetchTimeout, std::move(stop));
    };
  }
  return std::make_shared<Authenticator>(std::move(people));
}

}  // namespace reprise
