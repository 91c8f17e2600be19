#include "remote/postgres/postgres_api_tokens.h"

#include <utility>

#include "base/try.h"

namespace reprise {
namespace {

constexpr const char* kAdmin = "org_admin";
constexpr const char* kColumns =
    "select id, name, org, user_name, role, digest, "
    "(extract(epoch from created_at) * 1000)::bigint, (extract(epoch from expires_at) * 1000)::bigint "
    "from reprise.api_tokens where revoked_at is null order by created_at, id";

std::int64_t Milliseconds(Timestamp time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
Timestamp TimeOf(std::int64_t milliseconds) { return Timestamp(std::chrono::milliseconds(milliseconds)); }

ApiToken TokenOf(const Rows& rows, std::size_t row) {
  ApiToken token{
      .id = std::string(rows.text(row, 0)),
      .name = std::string(rows.text(row, 1)),
      .principal = {.role = rows.text(row, 4) == kAdmin ? Principal::Role::kOrgAdmin : Principal::Role::kUser,
                    .org = std::string(rows.text(row, 2)),
                    .user = std::string(rows.text(row, 3)),
                    .token_id = std::string(rows.text(row, 0))},
      .digest = std::string(rows.text(row, 5)),
      .created_at = TimeOf(rows.number(row, 6))};
  if (!rows.is_null(row, 7)) token.expires_at = TimeOf(rows.number(row, 7));
  return token;
}

}  // namespace

// If the content is too old or could not be read, returns a version that differs from all before.
ApiTokenStore::Version PostgresApiTokens::Look() const {
  const MutexLock lock(mutex_);
  if (IsKnown() && content_) return content_->version;
  return {.device = 2, .changed_ns = std::chrono::steady_clock::now().time_since_epoch().count()};
}

// Each change has a higher number, so the sum grows in whatever order changes become visible.
Result<ApiTokenStore::Version> PostgresApiTokens::ReadVersion() {
  const Rows rows = TRY(database_.Execute(
      {.sql = "select count(*), coalesce(sum(change), 0)::bigint from reprise.api_tokens", .values = {}}));
  return Version{.device = 1, .size = static_cast<std::uint64_t>(rows.number(0, 0)), .changed_ns = rows.number(0, 1)};
}

// The version is read first, so that later changes are found the next time.
Result<ApiTokenStore::Content> PostgresApiTokens::Read() {
  {
    const MutexLock lock(mutex_);
    if (!content_ && IsKnown()) return content_;  // all waiting callers get the same failure
  }
  const auto asked_at = std::chrono::steady_clock::now();
  const auto read = [this]() -> Result<Content> {
    Content content{.version = TRY(ReadVersion()), .tokens = {}};
    {
      const MutexLock lock(mutex_);
      if (content_ && content_->version == content.version) return content_;
    }
    const Rows rows = TRY(database_.Execute({.sql = kColumns}));
    for (std::size_t row = 0; row < rows.size(); ++row) content.tokens.push_back(TokenOf(rows, row));
    return content;
  }();
  const MutexLock lock(mutex_);
  asked_at_ = read ? asked_at : std::chrono::steady_clock::now();
  content_ = read;
  return read;
}

Result<ApiTokenStore::Made> PostgresApiTokens::Add(Principal principal, std::string name,
                                                   std::optional<Timestamp> expires_at) {
  Made made = TRY(Make(std::move(principal), std::move(name), expires_at));
  const ApiToken& token = made.token;
  SqlValue expires = SqlValue::Null();
  if (token.expires_at) expires = SqlValue(Milliseconds(*token.expires_at));
  // Older versions, which gave browsers cookies, read cookie_digest.
  TRY(database_.Execute(
      {.sql = "insert into reprise.api_tokens(id, name, org, user_name, role, digest, cookie_digest, created_at, "
              "expires_at) values ($1, $2, $3, $4, $5, $6, $6, to_timestamp($7::bigint / 1000.0), "
              "to_timestamp($8::bigint / 1000.0)) on conflict do nothing",
       .values = {token.id, token.name, token.principal.org, token.principal.user,
                  token.principal.role == Principal::Role::kOrgAdmin ? kAdmin : "user", token.digest,
                  Milliseconds(token.created_at), expires}}));
  return made;
}

Result<ApiToken> PostgresApiTokens::Revoke(std::string_view id) {
  const Rows revoked = TRY(database_.Execute(
      {.sql = "update reprise.api_tokens set revoked_at = coalesce(revoked_at, clock_timestamp()), change = "
              "nextval('reprise.api_token_changes') where id = $1 and (revoked_at is null or revoked_at > "
              "clock_timestamp() - interval '10 seconds') "
              "returning id, name, org, user_name, role, digest, "
              "(extract(epoch from created_at) * 1000)::bigint, (extract(epoch from expires_at) * 1000)::bigint",
       .values = {std::string(id)}}));
  if (revoked.empty()) return Fail(ErrorCode::kNotFound, "there is no token " + std::string(id));
  return TokenOf(revoked, 0);
}

TokenUses PostgresApiTokens::ReadUses() {
  TokenUses uses;
  const auto rows = database_.Execute({.sql = "select id, (extract(epoch from used_at) * 1000)::bigint from "
                                              "reprise.api_tokens where used_at is not null and revoked_at is null"});
  for (std::size_t row = 0; rows && row < rows->size(); ++row) {
    uses[std::string(rows->text(row, 0))] = TimeOf(rows->number(row, 1));
  }
  return uses;
}

Result<void> PostgresApiTokens::WriteUses(const TokenUses& uses) {
  const MutexLock lock(uses_mutex_);
  for (const auto& [id, at] : uses) {
    const auto written = written_.find(id);
    if (written != written_.end() && written->second == at) continue;
    TRY(database_.Execute({.sql = "update reprise.api_tokens set used_at = greatest(used_at, to_timestamp($2::bigint / "
                                  "1000.0)) where id = $1",
                           .values = {id, Milliseconds(at)}}));
    written_[id] = at;
  }
  return {};
}

}  // namespace reprise
