#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "base/queues.h"
#include "people/access_token.h"
#include "people/api_tokens.h"
#include "people/issuer_keys.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

// Identifies users by their token: an API token of this server or an access token of the issuer. Recent results are
// cached; for others one thread reads files and checks signatures, and another fetches the issuer's keys. Thread-safe.
class Authenticator {
 public:
  struct Options {
    std::shared_ptr<ApiTokenStore> tokens;
    std::optional<IssuerOptions> issuer{};
    // Fetches the issuer's keys; may block. Required if there is an issuer.
    std::function<Result<std::vector<IssuerKey>>(std::stop_token stop)> fetch_keys{};
    std::chrono::milliseconds fetch_pause{10'000};
  };
  explicit Authenticator(Options options);
  ~Authenticator();  // calls Stop
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  // The user, or nullopt: then another thread calls `done` once. Blocks only for one look at the file of tokens.
  // kUnauthenticated (reason "invalid_token"); kUnavailable (reason "issuer_unreachable", "overloaded", "stopping", or
  // the reason why tokens cannot be read).
  using Done = std::function<void(Result<Principal>)>;
  std::optional<Result<Principal>> Identify(std::string_view token, Done done);

  // The expiry of this API token, nullopt if it has none. Only Identify handles access tokens of an issuer. May read
  // the file. kUnauthenticated.
  Result<std::optional<Timestamp>> Accepts(std::string_view token);

  // Has the file of tokens read again if it was replaced. Blocks only for the look at the file.
  void Refresh();
  // Whether the API token with this id counts, as far as known now.
  bool Counts(const std::string& token_id);

  // Fails all waiting calls because the server stops. No `done` is called after this returns.
  void Stop();

 private:
  using Digests = std::unordered_map<std::string, ApiToken>;

  std::optional<Result<Principal>> IdentifyByDigest(std::string digest, Done done);
  Result<Principal> Look(const std::string& digest) REQUIRES(mutex_);
  bool IsFresh() const REQUIRES(mutex_);
  void ReadTokens();
  void NoteUse(const std::string& id) REQUIRES(mutex_);
  void WriteUses();
  void CheckSignature(std::string token, std::string digest, Done done);
  void Remember(const std::string& digest, const Identified& identified);
  std::optional<Result<Principal>> PostCheck(std::function<void()> check) REQUIRES(mutex_);
  void Tell(const Done& done, Result<Principal> result);

  const Options options_;
  std::optional<IssuerKeys> keys_;  // used by the queue's thread

  Mutex mutex_;
  std::optional<ApiTokenStore::Version> version_ GUARDED_BY(mutex_);  // of the next members; nullopt: not read yet
  std::optional<Error> unread_ GUARDED_BY(mutex_);                    // why they may be out of date
  Digests tokens_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::optional<Timestamp>> by_id_ GUARDED_BY(mutex_);  // times of expiry
  std::unordered_map<std::string, Identified> known_ GUARDED_BY(mutex_);                // by the access token's digest
  std::size_t pending_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  TokenUses uses_ GUARDED_BY(mutex_);
  std::optional<std::chrono::steady_clock::time_point> uses_written_ GUARDED_BY(mutex_);
  bool writing_uses_ GUARDED_BY(mutex_) = false, reading_ GUARDED_BY(mutex_) = false;

  Mutex stop_mutex_;
  std::unique_ptr<SerialQueue> queue_ = std::make_unique<SerialQueue>();
};

}  // namespace reprise
