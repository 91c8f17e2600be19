#include "people/authenticator.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <utility>

#include "base/logging.h"

namespace reprise {
namespace {

constexpr std::size_t kMostPending = 1'000, kMostKnown = 10'000;
// How long an access token still counts after its issuer has withdrawn the key.
constexpr std::chrono::seconds kKnownFor{60};
constexpr std::chrono::seconds kUsesWrittenEvery{60};

Error Unavailable(std::string reason, std::string message) {
  return {
      .code = ErrorCode::kUnavailable, .reason = std::move(reason), .message = std::move(message), .retryable = true};
}
Error Overloaded() { return Unavailable("overloaded", "too many tokens are being checked; try again"); }

// Connections end with their token: at its own expiry or, if opened after that, at the end of its acceptance.
Principal Opening(const Identified& known) {
  Principal principal = known.principal;
  principal.until = Now() < known.expires ? known.expires : known.until;
  return principal;
}

bool IsCurrent(const ApiToken& token) { return !token.expires_at || Now() < *token.expires_at; }

}  // namespace

Authenticator::Authenticator(Options options) : options_(std::move(options)) {
  uses_ = options_.tokens->ReadUses();
  if (!options_.issuer) return;
  IssuerKeys::Options keys{.fetch = options_.fetch_keys,
                           .post = [this](std::function<void()> job) { queue_->Post(std::move(job)); }};
  keys.pause = options_.fetch_pause;
  keys_.emplace(std::move(keys));
}

Authenticator::~Authenticator() { Stop(); }

void Authenticator::Stop() {
  const MutexLock stop_lock(stop_mutex_);
  if (!queue_) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;  // from now on only the keys post jobs
  }
  if (keys_) {
    std::promise<void> stopped;
    queue_->Post([&] {
      keys_->Stop();
      stopped.set_value();
    });
    stopped.get_future().wait();
    keys_->Join();
  }
  queue_.reset();
  WriteUses();
}

// --- API tokens ------------------------------------------------------------------------------------------------------

std::optional<Result<Principal>> Authenticator::IdentifyByDigest(std::string digest, Done done) {
  const MutexLock lock(mutex_);
  if (IsFresh()) {
    auto known = Look(digest);
    if (known || options_.tokens->is_exact()) return known;
  }
  return PostCheck([this, digest = std::move(digest), done = std::move(done)] {
    ReadTokens();
    Tell(done, [&] {
      const MutexLock again(mutex_);
      return Look(digest);
    }());
  });
}

// Added and revoked tokens take effect at once, because the file is another one.
bool Authenticator::IsFresh() const { return version_ && *version_ == options_.tokens->Look(); }

Result<Principal> Authenticator::Look(const std::string& digest) {
  const auto found = tokens_.find(digest);
  if (found == tokens_.end() && unread_) return Fail(*unread_);
  if (found == tokens_.end()) return InvalidToken("there is no such token, or it was revoked");
  if (!IsCurrent(found->second)) return InvalidToken("the token has expired");
  NoteUse(found->second.id);
  return found->second.principal;
}

void Authenticator::ReadTokens() {
  const ApiTokenStore::Version version = options_.tokens->Look();
  auto content = options_.tokens->Read();
  if (!content && content.error().code == ErrorCode::kUnavailable) {
    const MutexLock lock(mutex_);
    unread_ = std::move(content.error());
    return;
  }
  if (!content) LogError("no API token counts because they cannot be read", {{"error", content.error().message}});
  Digests tokens;
  std::unordered_map<std::string, std::optional<Timestamp>> by_id;
  for (const ApiToken& token : content ? content->tokens : std::vector<ApiToken>()) {
    tokens.emplace(token.digest, token);
    by_id.emplace(token.id, token.expires_at);
  }
  const MutexLock lock(mutex_);
  version_ = content ? content->version : version;
  unread_.reset();
  tokens_ = std::move(tokens);
  by_id_ = std::move(by_id);
}

void Authenticator::Refresh() {
  const MutexLock lock(mutex_);
  if (stopping_ || reading_ || !version_ || IsFresh()) return;
  reading_ = true;
  try {
    queue_->Post([this] {
      ReadTokens();
      const MutexLock again(mutex_);
      reading_ = false;
    });
  } catch (const std::system_error&) {  // tried again at the next look
    reading_ = false;
  }
}

bool Authenticator::Counts(const std::string& token_id) {
  const MutexLock lock(mutex_);
  const auto token = by_id_.find(token_id);
  return token != by_id_.end() && (!token->second || Now() < *token->second);
}

Result<std::optional<Timestamp>> Authenticator::Accepts(std::string_view token) {
  const bool has_three_parts = std::ranges::count(token, '.') == 2;  // as in a JWT (RFC 7519, 3)
  if (options_.issuer && has_three_parts && token.size() <= kMostTokenBytes) return std::nullopt;
  const bool fresh = options_.tokens->is_exact() && [this] {
    const MutexLock lock(mutex_);
    return IsFresh();
  }();
  if (!fresh) ReadTokens();
  const MutexLock lock(mutex_);
  const auto found = tokens_.find(DigestOfToken(token));
  if (found != tokens_.end() && IsCurrent(found->second)) return found->second.expires_at;
  return Fail(Reason::kUnauthenticated, "this is no API token of this server");
}

void Authenticator::NoteUse(const std::string& id) {
  uses_[id] = Now();
  const auto now = std::chrono::steady_clock::now();
  if (stopping_ || writing_uses_ || (uses_written_ && now - *uses_written_ < kUsesWrittenEvery)) return;
  writing_uses_ = true;
  try {
    queue_->Post([this] { WriteUses(); });
  } catch (const std::system_error&) {  // tried again at the next use
    writing_uses_ = false;
  }
}

void Authenticator::WriteUses() {
  TokenUses uses;
  {
    const MutexLock lock(mutex_);
    if (uses_.empty()) return;
    uses_written_ = std::chrono::steady_clock::now();
    writing_uses_ = false;
    uses = uses_;
  }
  if (auto written = options_.tokens->WriteUses(uses); !written) {
    LogWarning("the times of use of tokens cannot be stored", {{"error", written.error().message}});
  }
}

// --- access tokens ---------------------------------------------------------------------------------------------------

std::optional<Result<Principal>> Authenticator::Identify(std::string_view token, Done done) {
  if (token.size() > kMostTokenBytes) return InvalidToken("the access token is too long");
  std::string digest = DigestOfToken(token);
  if (token.starts_with(kApiTokenPrefix) || !options_.issuer) {
    return IdentifyByDigest(std::move(digest), std::move(done));
  }
  const MutexLock lock(mutex_);
  const auto known = known_.find(digest);
  if (known != known_.end() && Now() < known->second.until) return Opening(known->second);
  return PostCheck([this, token = std::string(token), digest = std::move(digest), done = std::move(done)] {
    CheckSignature(token, digest, done);
  });
}

void Authenticator::CheckSignature(std::string token, std::string digest, Done done) {
  auto read = ReadAccessToken(token);
  // Claims that are wrong in themselves need no key; until the signature is checked, nothing else is believed.
  auto identified = read ? CheckClaims(read->claims, *options_.issuer, Now()) : Fail(read.error());
  if (!identified) return Tell(done, Fail(identified.error()));
  const auto shared = std::make_shared<AccessToken>(*std::move(read));
  keys_->Find(shared->algorithm, shared->kid,
              [this, shared, who = *std::move(identified), digest = std::move(digest),
               done = std::move(done)](const Result<PublicKey>& key) {
                if (!key) return Tell(done, Fail(key.error()));
                if (!key->Verifies(shared->signed_part, shared->signature)) {
                  return Tell(done, InvalidToken("the access token's signature is not valid"));
                }
                Remember(digest, who);
                Tell(done, Opening(who));
              });
}

void Authenticator::Remember(const std::string& digest, const Identified& identified) {
  const Timestamp now = Now();
  const MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) {
    std::erase_if(known_, [&](const auto& known) { return known.second.until <= now; });
  }
  if (known_.size() >= kMostKnown) known_.clear();
  known_[digest] = {.principal = identified.principal,
                    .until = std::min(identified.until, now + kKnownFor),
                    .expires = identified.expires};
}

// --- waiting ---------------------------------------------------------------------------------------------------------

std::optional<Result<Principal>> Authenticator::PostCheck(std::function<void()> check) {
  if (stopping_) return Fail(Unavailable("stopping", "the server is stopping"));
  if (pending_ >= kMostPending) return Fail(Overloaded());
  try {
    queue_->Post(std::move(check));
  } catch (const std::system_error&) {
    return Fail(Overloaded());
  }
  ++pending_;
  return std::nullopt;
}

void Authenticator::Tell(const Done& done, Result<Principal> result) {
  {
    const MutexLock lock(mutex_);
    --pending_;
  }
  done(std::move(result));
}

}  // namespace reprise
