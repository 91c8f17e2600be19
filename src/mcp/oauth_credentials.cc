#include "mcp/oauth_credentials.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/atomic_write.h"
#include "base/folder_lock.h"
#include "base/json.h"
#include "base/random.h"
#include "base/try.h"
#include "crypto/jwe.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxFile = 4u << 20;
constexpr const char* kType = "reprise/mcp-logins";
constexpr int kVersion = 1;
constexpr std::chrono::seconds kLongestWait{10};  // for another process that writes

Json ToJson(const OAuthRegistration& registration) {
  return {{"issuer", registration.issuer},
          {"client_id", registration.client_id},
          {"client_secret", registration.client_secret},
          {"token_method", registration.token_method},
          {"redirect_uri", registration.redirect_uri}};
}

Json ToJson(const OAuthLogin& login) {
  Json registrations = Json::array();
  for (const OAuthRegistration& each : login.registrations) {
    if (!each.is_configured) registrations.push_back(ToJson(each));
  }
  const OAuthTokens& tokens = login.tokens;
  return {{"url", login.url},
          {"registrations", std::move(registrations)},
          {"tokens",
           {{"issuer", tokens.issuer},
            {"resource", tokens.resource},
            {"access_token", tokens.access_token},
            {"refresh_token", tokens.refresh_token},
            {"scope", tokens.scope},
            {"expires_at", tokens.expires_at}}},
          {"wanted_scope", login.wanted_scope}};
}

OAuthLogin LoginOf(const Json& json) {
  OAuthLogin login{.url = TextMember(json, "url"), .registrations = {}, .tokens = {}, .wanted_scope = {}};
  const Json& registrations = MemberOf(json, "registrations");
  if (registrations.is_array()) {
    for (const Json& each : registrations) {
      login.registrations.push_back({.issuer = TextMember(each, "issuer"),
                                     .client_id = TextMember(each, "client_id"),
                                     .client_secret = TextMember(each, "client_secret"),
                                     .token_method = TextMember(each, "token_method"),
                                     .redirect_uri = TextMember(each, "redirect_uri")});
    }
  }
  const Json& tokens = MemberOf(json, "tokens");
  login.tokens = {.issuer = TextMember(tokens, "issuer"),
                  .resource = TextMember(tokens, "resource"),
                  .access_token = TextMember(tokens, "access_token"),
                  .refresh_token = TextMember(tokens, "refresh_token"),
                  .scope = TextMember(tokens, "scope")};
  const Json& expires = MemberOf(tokens, "expires_at");
  if (expires.is_number_integer()) login.tokens.expires_at = expires.get<std::int64_t>();
  login.wanted_scope = TextMember(json, "wanted_scope");
  return login;
}

OAuthLogin LoginIn(const Json& servers, const std::string& server, const std::string& url) {
  OAuthLogin login = LoginOf(MemberOf(servers, server));
  if (login.url != url) login = OAuthLogin{.url = url, .registrations = {}, .tokens = {}, .wanted_scope = {}};
  return login;
}

}  // namespace

Result<Json> OAuthCredentials::Read() {
  const auto text = file_system_.ReadFile(path_, kMaxFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return Json::object();
  if (!text) return Fail(text.error());
  std::string plain = *text;
  if (keys_) {
    auto opened = TRY(OpenJwe(*text, *keys_));
    const auto header = TRY(ParseJson(opened.protected_header));
    if (TextMember(header, "typ") != kType)
      return Fail(ErrorCode::kCorruption, "the file of log-ins at MCP servers is another file", path_);
    plain = std::move(opened.plaintext);
  }
  const auto json = TRY(ParseJson(plain));
  if (!MemberOf(json, "servers").is_object())
    return Fail(ErrorCode::kCorruption, "the file of log-ins at MCP servers cannot be read", path_);
  return MemberOf(json, "servers");
}

Result<void> OAuthCredentials::Write(const Json& servers) {
  std::string text = DumpJson({{"schema", kVersion}, {"servers", servers}});
  if (keys_) text = TRY(SealJwe({{"typ", kType}, {"ver", kVersion}}, text, *keys_));
  TRY(ReplaceFile(file_system_, path_, text));
  return file_system_.SyncDirectory(ParentDirectory(path_));
}

Result<OAuthLogin> OAuthCredentials::Look(const std::string& server, const std::string& url) {
  const MutexLock lock(mutex_);
  const auto servers = TRY(Read());
  return LoginIn(servers, server, url);
}

Result<OAuthLogin> OAuthCredentials::Change(const std::string& server, const std::string& url,
                                            const std::function<void(OAuthLogin&)>& change) {
  const MutexLock lock(mutex_);
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto servers = Read();
  if (!servers) {  // kept for whoever wants to know what it was
    TRY(file_system_.Rename(path_, path_ + ".damaged." + RandomHex(4)));
    servers = Json::object();
  }
  OAuthLogin login = LoginIn(*servers, server, url);
  change(login);
  (*servers)[server] = ToJson(login);
  TRY(Write(*servers));
  return login;
}

Result<bool> OAuthCredentials::Forget(const std::string& server) {
  const MutexLock lock(mutex_);
  const auto alone = TRY(FolderLock::Take(ParentDirectory(path_), kLongestWait));
  auto servers = TRY(Read());
  const bool was_logged_in = !LoginOf(MemberOf(servers, server)).tokens.access_token.empty();
  if (servers.erase(server) > 0) TRY(Write(servers));
  return was_logged_in;
}

}  // namespace reprise
