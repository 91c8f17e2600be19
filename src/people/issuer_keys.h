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
  std::string kid;  // empty: it has none
  PublicKey key;
};
// Those that can be used here; others are passed over. kInvalidArgument if it is no JWK Set.
Result<std::vector<IssuerKey>> ReadIssuerKeys(std::string_view jwk_set);

// Whether an issuer's keys may come from there: by TLS, or from this machine.
bool IsSafeIssuerUrl(std::string_view url);

// Asks the issuer's discovery document where its keys are, and fetches them. Each of the two documents may take
// `timeout`.
Result<std::vector<IssuerKey>> FetchIssuerKeys(Transport& transport, const std::string& issuer,
                                               std::chrono::milliseconds timeout, std::stop_token stop);

// The keys that an issuer signs with: kept, and fetched again when a token names one that is not among them, or when
// they are old; not more often than once in a while, however many such tokens come. One thread uses it; it waits for
// nothing, as fetching has a thread of its own.
class IssuerKeys {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::function<Result<std::vector<IssuerKey>>(std::stop_token stop)> fetch;  // FetchIssuerKeys
    std::function<void(std::function<void()>)> post;  // has a job run by the thread that uses the object
    std::chrono::milliseconds pause{10'000};          // between the beginnings of two fetches
    std::chrono::milliseconds fresh{600'000};         // older keys are fetched again, and used meanwhile
    std::chrono::milliseconds usable{86'400'000};     // until then, if that fails
  };
  explicit IssuerKeys(Options options) : options_(std::move(options)) {}

  // Calls `found`, now or when they have been fetched, with the key of this algorithm and name; without a name, with
  // the only one of the algorithm. kUnauthenticated (reason "invalid_token"): the issuer has none; kUnavailable (reason
  // "issuer_unreachable"): it does not say.
  using Found = std::function<void(Result<PublicKey>)>;
  void Find(std::string algorithm, std::string kid, Found found);
  // Fetches nothing any more; whoever waits is told.
  void Stop();
  // Waits for what is being fetched, whose outcome is then posted: the object must live until that job has run. By
  // another thread than the one that uses the object. REQUIRES: Stop has been called.
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
  std::optional<Clock::time_point> fetched_;  // keys_
  std::optional<Clock::time_point> begun_;    // the last fetch
  bool fetching_ = false, failed_ = false;    // failed_: the last fetch
  std::vector<Wanted> waiting_;
  std::stop_source stop_;
  std::unique_ptr<SerialQueue> fetcher_ = std::make_unique<SerialQueue>();
};

}  // namespace reprise
