#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/factories.h"
#include "app/options.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "people/api_tokens.h"
#include "terminal/console.h"

namespace reprise {
namespace {

Json Described(const ApiToken& token, const TokenUses& uses) {
  const auto used = uses.find(token.id);
  return {{"id", token.id},
          {"org", token.principal.org},
          {"user", token.principal.user},
          {"role", token.principal.role == Principal::Role::kOrgAdmin ? "org_admin" : "user"},
          {"name", token.name},
          {"created_at", FormatTimestamp(token.created_at)},
          {"expires_at", token.expires_at ? Json(FormatTimestamp(*token.expires_at)) : Json(nullptr)},
          {"last_used_at", used == uses.end() ? Json(nullptr) : Json(FormatTimestamp(used->second))}};
}

std::string Day(Timestamp time) { return FormatTimestamp(time).substr(0, std::string_view("2026-01-31").size()); }

std::string LineOf(const ApiToken& token, const TokenUses& uses) {
  const auto used = uses.find(token.id);
  const bool admin = token.principal.role == Principal::Role::kOrgAdmin;
  const std::string until = !token.expires_at            ? "until it is revoked"
                            : *token.expires_at <= Now() ? "EXPIRED " + Day(*token.expires_at)
                                                         : "until " + Day(*token.expires_at);
  return token.id + "  " + VisibleLine(token.principal.org + "/" + token.principal.user) +
         (admin ? " (org admin)" : "") + "  " + until + "  " +
         (used == uses.end() ? "never used" : "used " + Day(used->second)) +
         (token.name.empty() ? "" : "  " + VisibleLine(token.name));
}

}  // namespace

int RunTokenAdd(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  using Role = Principal::Role;
  std::optional<Timestamp> expires;
  if (line.token.expires_days > 0) expires = Now() + std::chrono::days(line.token.expires_days);
  const auto tokens = OpenTokens(*options);
  if (!tokens) return Complain(tokens.error());
  const auto made = (*tokens)->Add(
      {.role = line.token.org_admin ? Role::kOrgAdmin : Role::kUser, .org = line.token.org, .user = line.argument},
      line.token.name, expires);
  if (!made) return Complain(made.error());
  if (line.json) {
    Json json = Described(made->token, {});
    json["token"] = made->text;
    Print(DumpJson(json) + "\n");
    return kExitOk;
  }
  Print(made->text + "\n");
  if (!options->auth.has_people())
    Warn("no \"auth\" is configured, so no server asks for this token (docs: people.md)");
  return kExitOk;
}

int RunTokenList(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  const auto tokens = OpenTokens(*options);
  if (!tokens) return Complain(tokens.error());
  const auto content = (*tokens)->Read();
  if (!content) return Complain(content.error());
  const TokenUses uses = (*tokens)->ReadUses();
  Json list = Json::array();
  for (const ApiToken& token : content->tokens) {
    list.push_back(Described(token, uses));
    if (!line.json) Print(LineOf(token, uses) + "\n");
  }
  if (line.json) Print(DumpJson(Json{{"tokens", list}}) + "\n");
  if (!line.json && list.empty()) Warn("there is no token yet (`reprise users token add` makes one)");
  return kExitOk;
}

int RunTokenRevoke(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  const auto tokens = OpenTokens(*options);
  if (!tokens) return Complain(tokens.error());
  const auto revoked = (*tokens)->Revoke(line.argument);
  if (!revoked) return Complain(revoked.error());
  if (line.json) {
    Print(DumpJson(Json{{"revoked", revoked->id}}) + "\n");
  } else {
    Print("revoked " + revoked->id + " of " + VisibleLine(revoked->principal.org + "/" + revoked->principal.user) +
          "\n");
  }
  return kExitOk;
}

}  // namespace reprise
