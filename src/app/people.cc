#include "app/people.h"

#include <chrono>
#include <stop_token>
#include <utility>

#include "app/prompt_folder.h"
#include "people/issuer_keys.h"

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

std::shared_ptr<Authenticator> MakeAuthenticator(const Options& options, Transport& transport) {
  if (!options.auth.has_people()) return nullptr;
  Authenticator::Options people{.tokens_file = TokensFileOf(options), .uses_file = TokenUsesFileOf(options)};
  if (options.auth.type == AuthOptions::Type::kOidc) {
    people.issuer = IssuerOf(options.auth);
    people.fetch_keys = [&transport, issuer = options.auth.issuer](std::stop_token stop) {
      return FetchIssuerKeys(transport, issuer, kFetchTimeout, std::move(stop));
    };
  }
  return std::make_shared<Authenticator>(std::move(people));
}

}  // namespace reprise
