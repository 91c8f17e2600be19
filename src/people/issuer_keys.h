#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/queues.h"
#include "crypto/public_key.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// A key of an issuer's JWK Set.
struct IssuerKey {
  std::string kid;  // empty if it has none
  PublicKey key;
};
// Reads the usable keys and skips others. kInvalidArgument if it is not a JWK Set or has no usable key.
Result<std::vector<IssuerKey>> ReadIssuerKeys(std::string_view jwk_set);

// Whether an issuer's keys may be fetched from `url`, over TLS or from this machine.
bool IsSafeIssuerUrl(std::string_view url);

// Finds the keys' URL in the issuer's discovery document and fetches them. Each of the two documents may take
// `timeout`.
Result<std::vector<IssuerKey>> FetchIssuerKeys(Transport& transport, const std::string& issuer,
                                               std::chrono::milliseconds timeout, std::stop_token stop);

// Caches an issuer's keys. Fetches them again if a token names an unknown key or if they are old, but only once per
// `pause`, however many such tokens come. One thread uses it and never blocks, because another thread fetches.
class IssuerKeys {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::function<Result<std::vector<IssuerKey>>(std::stop_token stop)> fetch;  // FetchIssuerKeys
    std::function<void(std::function<void()>)> post;  // runs a job on the thread that uses the object
    std::chrono::milliseconds pause{10'000};          // between the starts of two fetches
    std::chrono::milliseconds fresh{600'000};         // older keys are still used while new ones are fetched
    std::chrono::milliseconds usable{86'400'000};     // if fetching fails, they are used for so long
  };
  explicit IssuerKeys(Options options) : options_(std::move(options)) {}

  // Calls `found`, now or after a fetch, with the only key of this algorithm and name (any name if `kid` is empty).
  // kUnauthenticated (reason "invalid_token") if there is no single one; kUnavailable (reason "issuer_unreachable") if
  // the keys cannot be fetched.
  using Found = std::function<void(Result<PublicKey>)>;
  void Find(std::string algorithm, std::string kid, Found found);
  // Stops fetching; tells all waiting callers.
  void Stop();
  // Waits for the running fetch, which then posts its result, so the object must live until that job has run. Call it
  // from another thread than the one that uses the object. REQUIRES: Stop has been called.
  void Join() { fetcher_.reset(); }

 private:
  struct Wanted {
    std::string algorithm, kid;
    Found found;
  };
  const PublicKey* Look(const Wanted& wanted) const;
  void Tell(const Wanted& wanted) const;
  void Fetch();
  void OnFetched(Result<std::vector<IssuerKey>> keys);

  const Options options_;
  std::vector<IssuerKey> keys_;
  std::optional<Clock::time_point> fetched_;  // when keys_ were fetched
  std::optional<Clock::time_point> begun_;    // start of the last fetch
  bool fetching_ = false, failed_ = false;    // failed_: the last fetch failed
  std::vector<Wanted> waiting_;
  std::stop_source stop_;
  std::unique_ptr<SerialQueue> fetcher_ = std::make_unique<SerialQueue>();
};

}  // namespace reprise
