#include "app/people_checks.h"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

#include "app/people.h"
#include "net/curl_transport.h"
#include "people/issuer_keys.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kIssuerTimeout{5'000};
constexpr const char* kIssuerCheck = "issuer";
constexpr const char* kTokensCheck = "API tokens";

Finding CheckIssuer(const AuthOptions& auth) {
  CurlTransport transport;
  const auto keys = FetchIssuerKeys(transport, auth.issuer, kIssuerTimeout, std::stop_token());
  if (!keys) return {kIssuerCheck, Verdict::kFailure, auth.issuer + ": " + keys.error().message};
  if (keys->empty()) return {kIssuerCheck, Verdict::kFailure, auth.issuer + " has no key for RS256, ES256 or EdDSA"};
  return {kIssuerCheck, Verdict::kOk, auth.issuer + ", " + std::to_string(keys->size()) + " keys"};
}

Finding CheckTokens(const Options& options) {
  const auto tokens = OpenTokens(options);
  const auto content = tokens ? (*tokens)->Read() : Fail(tokens.error());
  if (!content) return {kTokensCheck, Verdict::kFailure, content.error().message};
  const auto counts = std::count_if(content->tokens.begin(), content->tokens.end(), [](const ApiToken& token) {
    return !token.expires_at || Now() < *token.expires_at;
  });
  if (counts == 0 && options.auth.type == AuthOptions::Type::kTokens) {
    return {kTokensCheck, Verdict::kWarning,
            "there is none, so nobody can use the server: reprise users token add NAME"};
  }
  return {kTokensCheck, Verdict::kOk, std::to_string(counts) + " that count"};
}

}  // namespace

std::vector<Finding> CheckPeople(const Options& options) {
  std::vector<Finding> findings;
  if (!options.auth.has_people()) return findings;
  if (options.auth.type == AuthOptions::Type::kOidc) findings.push_back(CheckIssuer(options.auth));
  findings.push_back(CheckTokens(options));
  if (options.workspace_mode == WorkspaceMode::kShared) {
    findings.push_back(
        {"workspace", Verdict::kWarning, "is shared: each user may see and change what the others do there"});
  }
  return findings;
}

}  // namespace reprise
