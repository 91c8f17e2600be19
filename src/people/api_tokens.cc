#include "people/api_tokens.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kMostFileBytes = 16 << 20, kSecretBytes = 32, kIdBytes = 6, kMostNameBytes = 200;
constexpr std::string_view kIdPrefix = "token_", kUserRole = "user", kAdminRole = "org_admin";

Error Damaged(const std::string& path) {
  return MakeError(ErrorCode::kCorruption, path + " is damaged; restore it, or remove it and add the tokens anew");
}

Json ToJson(const ApiToken& token) {
  const Principal& principal = token.principal;
  return {{"id", token.id},
          {"name", token.name},
          {"org", principal.org},
          {"user", principal.user},
          {"role", principal.role == Principal::Role::kOrgAdmin ? kAdminRole : kUserRole},
          {"digest", token.digest},
          {"cookie_digest", token.digest},  // read by versions that gave browsers cookies
          {"created_at", FormatTimestamp(token.created_at)},
          {"expires_at", token.expires_at ? Json(FormatTimestamp(*token.expires_at)) : Json(nullptr)}};
}

bool IsDigest(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  constexpr std::size_t kBytes = 32;
  return text.starts_with(kPrefix) && IsRandomHex(text.substr(kPrefix.size()), kBytes);
}

std::optional<ApiToken> TokenFrom(const Json& json) {
  const std::string role = TextMember(json, "role");
  const auto created = ParseTimestamp(TextMember(json, "created_at"));
  ApiToken token{.id = TextMember(json, "id"),
                 .name = TextMember(json, "name"),
                 .principal = {.role = role == kAdminRole ? Principal::Role::kOrgAdmin : Principal::Role::kUser,
                               .org = TextMember(json, "org"),
                               .user = TextMember(json, "user")},
                 .digest = TextMember(json, "digest"),
                 .created_at = created.value_or(Timestamp())};
  if (!created || (role != kAdminRole && role != kUserRole) || !token.id.starts_with(kIdPrefix) ||
      !IsPrincipalName(token.principal.org) || !IsPrincipalName(token.principal.user) || !IsDigest(token.digest) ||
      !json.contains("expires_at")) {
    return std::nullopt;
  }
  token.principal.token_id = token.id;
  if (json["expires_at"].is_null()) return token;
  const auto expires = ParseTimestamp(TextMember(json, "expires_at"));
  if (!expires) return std::nullopt;
  token.expires_at = *expires;
  return token;
}

}  // namespace

std::string DigestOfToken(std::string_view token) { return Sha256Digest({token}); }

ApiTokenStore::Version ApiTokenFile::Look() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .changed_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
}

Result<ApiTokenStore::Content> ApiTokenFile::Read() {
  // Take the version first: if the file is replaced meanwhile, the version is stale and the file is read again.
  Content content{.version = Look(), .tokens = {}};
  const auto text = ReadOwnFile(path_, kMostFileBytes);
  if (!text && IsNotFound(text.error())) return content;
  if (!text) return Fail(text.error());
  const auto json = ParseJson(*text);
  if (!json || MemberOf(*json, "schema") != 1 || !MemberOf(*json, "tokens").is_array()) return Fail(Damaged(path_));
  for (const Json& one : json->at("tokens")) {
    auto token = TokenFrom(one);
    if (!token) return Fail(Damaged(path_));
    content.tokens.push_back(*std::move(token));
  }
  return content;
}

Result<ApiTokenStore::Made> ApiTokenStore::Make(Principal principal, std::string name,
                                                std::optional<Timestamp> expires_at) {
  if (!IsPrincipalName(principal.org) || !IsPrincipalName(principal.user)) {
    return Fail(ErrorCode::kInvalidArgument, "a user and an org are 1 to 255 bytes without control characters");
  }
  if (name.size() > kMostNameBytes || (!name.empty() && !IsPrincipalName(name))) {
    return Fail(ErrorCode::kInvalidArgument, "a token's name is at most 200 bytes without control characters");
  }
  std::array<char, kSecretBytes> secret{};
  FillRandom(secret.data(), secret.size());
  Made made{.token = {}, .text = std::string(kApiTokenPrefix)};
  AppendBase64Url(made.text, {secret.data(), secret.size()});
  made.token = {.id = std::string(kIdPrefix) + RandomHex(kIdBytes),
                .name = std::move(name),
                .principal = std::move(principal),
                .digest = DigestOfToken(made.text),
                .created_at = Now(),
                .expires_at = expires_at};
  made.token.principal.token_id = made.token.id;
  return made;
}

Result<ApiTokenStore::Made> ApiTokenFile::Add(Principal principal, std::string name,
                                              std::optional<Timestamp> expires_at) {
  auto made = TRY(Make(std::move(principal), std::move(name), expires_at));
  PosixFileSystem disk;
  TRY(CreateDirectories(disk, ParentDirectory(path_)));
  const auto lock = TRY(FolderLock::Take(ParentDirectory(path_), std::nullopt));
  auto content = TRY(Read());
  content.tokens.push_back(made.token);
  TRY(Write(content.tokens));
  return made;
}

Result<ApiToken> ApiTokenFile::Revoke(std::string_view id) {
  const Error none = MakeError(ErrorCode::kNotFound, "there is no token " + std::string(id));
  if (Look() == Version()) return Fail(none);
  const auto lock = TRY(FolderLock::Take(ParentDirectory(path_), std::nullopt));
  auto content = TRY(Read());
  const auto found = std::ranges::find(content.tokens, id, &ApiToken::id);
  if (found == content.tokens.end()) return Fail(none);
  ApiToken revoked = std::move(*found);
  content.tokens.erase(found);
  TRY(Write(content.tokens));
  return revoked;
}

Result<void> ApiTokenFile::Write(const std::vector<ApiToken>& tokens) const {
  Json list = Json::array();
  for (const ApiToken& token : tokens) list.push_back(ToJson(token));
  PosixFileSystem disk;
  TRY(ReplaceFile(disk, path_, DumpJsonPretty({{"schema", 1}, {"tokens", std::move(list)}}) + "\n"));
  return disk.SyncDirectory(ParentDirectory(path_));
}

TokenUses ApiTokenFile::ReadUses() {
  TokenUses uses;
  const auto text = ReadSmallFile(uses_path_, kMostFileBytes);
  const auto json = text ? ParseJson(*text) : Fail(text.error());
  if (!json || !json->is_object()) return uses;
  for (const auto& [id, time] : json->items()) {
    const auto used = time.is_string() ? ParseTimestamp(time.get_ref<const std::string&>()) : Fail({});
    if (used) uses[id] = *used;
  }
  return uses;
}

Result<void> ApiTokenFile::WriteUses(const TokenUses& uses) {
  if (uses_path_.empty()) return {};
  Json json = Json::object();
  for (const auto& [id, time] : uses) json[id] = FormatTimestamp(time);
  PosixFileSystem disk;
  return ReplaceFile(disk, uses_path_, DumpJson(json) + "\n", Durability::kUnsynced);
}

}  // namespace reprise
