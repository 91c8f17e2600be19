#include "people/issuer_keys.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/public_address.h"
#include "base/text.h"
#include "base/try.h"
#include "people/access_token.h"

namespace reprise {
namespace {

constexpr std::size_t kMostDocumentBytes = 1 << 20, kMostKeys = 100, kMostWaiting = 1'000;

tl::unexpected<Error> Unusable(std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); }

Error Unreachable() {
  return Refused(Reason::kIssuerUnreachable, "the keys of the access token's issuer cannot be fetched");
}

// Receives a document.
class Document final : public HttpResponseHandler {
 public:
  void OnHead(int status, const HttpHeaders&) override { status_ = status; }
  bool OnData(std::string_view bytes) override {
    text_ += bytes;
    return text_.size() <= kMostDocumentBytes;
  }
  Result<std::string> Take() {
    if (status_ != 200) return Unusable("it answers with status " + std::to_string(status_));
    if (text_.size() > kMostDocumentBytes) return Unusable("its document is too large");
    return std::move(text_);
  }

 private:
  int status_ = 0;
  std::string text_;
};

Result<std::string> Download(Transport& transport, std::string url, std::chrono::milliseconds timeout,
                             std::stop_token stop) {
  HttpRequest request;
  request.url = std::move(url);
  request.headers = {{"Accept", "application/json"}};
  request.connect_timeout = request.idle_timeout = timeout;
  request.total_timeout = timeout;
  Document document;
  TRY(transport.Perform(std::move(request), document, std::move(stop)));
  return document.Take();
}

Result<std::string> KeysUrlIn(std::string_view discovery, const std::string& issuer) {
  const auto document = TRY(ParseJson(discovery));
  if (MemberOf(document, "issuer") != issuer) return Unusable("the discovery document is of another issuer");
  std::string url = TextMember(document, "jwks_uri");
  if (!IsSafeIssuerUrl(url)) return Unusable("the discovery document has no jwks_uri with https");
  return url;
}

}  // namespace

Result<std::vector<IssuerKey>> ReadIssuerKeys(std::string_view jwk_set) {
  const auto document = TRY(ParseJson(jwk_set));
  const Json& list = MemberOf(document, "keys");
  if (!list.is_array() || list.size() > kMostKeys) return Unusable("this is no JWK Set");
  std::vector<IssuerKey> keys;
  for (const Json& jwk : list) {
    auto key = PublicKey::FromJwk(jwk);
    if (key) keys.push_back({.kid = TextMember(jwk, "kid"), .key = *std::move(key)});
  }
  if (keys.empty()) return Unusable("the JWK Set has no key for RS256, ES256 or EdDSA");
  return keys;
}

bool IsSafeIssuerUrl(std::string_view url) {
  if (url.starts_with("https://")) return !HostOf(url).empty();
  return url.starts_with("http://") && IsLoopbackHost(HostOf(url));
}

Result<std::vector<IssuerKey>> FetchIssuerKeys(Transport& transport, const std::string& issuer,
                                               std::chrono::milliseconds timeout, std::stop_token stop) {
  const std::string base = issuer.substr(0, issuer.find_last_not_of('/') + 1);
  const auto discovery = TRY(Download(transport, base + "/.well-known/openid-configuration", timeout, stop));
  const auto url = TRY(KeysUrlIn(discovery, issuer));
  const auto keys = TRY(Download(transport, url, timeout, stop));
  return ReadIssuerKeys(keys);
}

const PublicKey* IssuerKeys::Look(const Wanted& wanted) const {
  const PublicKey* found = nullptr;
  for (const IssuerKey& each : keys_) {
    if (each.key.algorithm() != wanted.algorithm || (!wanted.kid.empty() && each.kid != wanted.kid)) continue;
    if (found) return nullptr;  // two fit, so it is ambiguous
    found = &each.key;
  }
  return found;
}

void IssuerKeys::Tell(const Wanted& wanted) const {
  if (const PublicKey* const key = Look(wanted)) return wanted.found(*key);
  if (failed_ || keys_.empty()) return wanted.found(Fail(Unreachable()));
  wanted.found(InvalidToken("the access token's key is not one of its issuer's"));
}

void IssuerKeys::Find(std::string algorithm, std::string kid, Found found) {
  Wanted wanted{std::move(algorithm), std::move(kid), std::move(found)};
  const auto now = Clock::now();
  const auto age = fetched_ ? now - *fetched_ : Clock::duration::max();
  if (age >= options_.usable) keys_.clear();
  const bool known = Look(wanted) != nullptr;
  const bool wants_fetch = !known || age >= options_.fresh;
  const bool may_fetch = !stop_.stop_requested() && !fetching_ && (!begun_ || now - *begun_ >= options_.pause);
  if (wants_fetch && may_fetch) Fetch();
  if (known || !fetching_ || stop_.stop_requested()) return Tell(wanted);
  if (waiting_.size() >= kMostWaiting) return wanted.found(Fail(Unreachable()));
  waiting_.push_back(std::move(wanted));
}

void IssuerKeys::Fetch() {
  fetching_ = true;
  begun_ = Clock::now();
  fetcher_->Post([this, stop = stop_.get_token()] {
    auto keys = std::make_shared<Result<std::vector<IssuerKey>>>(options_.fetch(stop));
    options_.post([this, keys] { OnFetched(std::move(*keys)); });
  });
}

void IssuerKeys::OnFetched(Result<std::vector<IssuerKey>> keys) {
  fetching_ = false;
  failed_ = !keys;
  if (keys) {
    keys_ = *std::move(keys);
    fetched_ = Clock::now();
    LogInfo("the issuer's keys were fetched", {{"keys", keys_.size()}});
  } else if (!stop_.stop_requested()) {
    LogWarning("the issuer's keys cannot be fetched", {{"error", keys.error().message}});
  }
  for (const Wanted& wanted : std::exchange(waiting_, {})) Tell(wanted);
}

void IssuerKeys::Stop() {
  stop_.request_stop();
  for (const Wanted& wanted : std::exchange(waiting_, {})) wanted.found(Fail(Unreachable()));
}

}  // namespace reprise
