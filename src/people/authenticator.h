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

// Tells who shows a token: an API token of this server, or an access token of the issuer. Who has just been told is
// told again at once; for everybody else there is a thread that reads files and checks signatures, and another that
// fetches the issuer's keys. Thread-safe.
class Authenticator {
 public:
  struct Options {
    std::shared_ptr<ApiTokenStore> tokens;
    std::optional<IssuerOptions> issuer{};
    // Fetches the issuer's keys, and may block. Needed if there is an issuer.
    std::function<Result<std::vector<IssuerKey>>(std::stop_token stop)> fetch_keys{};
    std::chrono::milliseconds fetch_pause{10'000};
  };
  explicit Authenticator(Options options);
  ~Authenticator();  // Stop
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  // Who it is, or nullopt: then `done` is called, once, by another thread. Waits for nothing but one look at the file
  // of tokens. kUnauthenticated (reason "invalid_token"); kUnavailable (reason "issuer_unreachable", "overloaded",
  // "stopping", or why the tokens cannot be read now).
  using Done = std::function<void(Result<Principal>)>;
  std::optional<Result<Principal>> Identify(std::string_view token, Done done);

  // Until when this API token counts, nullopt if for ever; of access tokens of an issuer only Identify tells. May read
  // the file. kUnauthenticated.
  Result<std::optional<Timestamp>> Accepts(std::string_view token);

  // Looks whether the file of tokens is another one now, and has it read then. Waits for nothing but that look.
  void Refresh();
  // Whether the API token of this id counts, as far as that is known now.
  bool Counts(const std::string& token_id);

  // Everybody who waits is told that the server stops; when this returns no `done` is called any more.
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
  std::optional<ApiTokenStore::Version> version_ GUARDED_BY(mutex_);  // of what follows; nullopt: not read yet
  std::optional<Error> unread_ GUARDED_BY(mutex_);                    // why it may be older than what there is
  Digests tokens_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::optional<Timestamp>> by_id_ GUARDED_BY(mutex_);  // when they expire
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
