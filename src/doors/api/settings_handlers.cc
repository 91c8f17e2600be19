#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "approval/rules.h"
#include "base/json.h"
#include "base/try.h"
#include "doors/api/bodies.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/api/server.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise {
namespace {

Result<ToolServerLogins*> LoginsOf(const HandlerContext& context, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  if (ToolServerLogins* const logins = context.shared.options.logins) return logins;
  return Fail(ErrorCode::kNotFound, "there is no such MCP server");
}

// A failed log-in at another server must not look like a refusal of this request.
Error OfLogin(Error error) {
  if (error.code == ErrorCode::kForbidden) error.code = ErrorCode::kConflict;
  return error;
}

Result<Outcome> BeginServerLogin(const HandlerContext& context, const Request& request) {
  auto* const logins = TRY(LoginsOf(context, request));
  const auto page = TRY(logins->BeginLogin(request.captures.at(0)).map_error(OfLogin));
  return JsonReply({{"open", page.empty() ? Json(nullptr) : Json(page)}});
}

Result<Outcome> LogOutAtServer(const HandlerContext& context, const Request& request) {
  auto* const logins = TRY(LoginsOf(context, request));
  const bool was_logged_in = TRY(logins->LogOut(request.captures.at(0)));
  return JsonReply({{"was_logged_in", was_logged_in}});
}

// A server that does not answer must not look like this one, which is there.
Error OfToolServer(Error error) {
  if (error.code == ErrorCode::kProvider) error.code = ErrorCode::kUnavailable;
  return error;
}

Result<ToolServerSettings*> ToolServersOf(const HandlerContext& context) {
  if (ToolServerSettings* const servers = context.shared.options.tool_servers) return servers;
  return Fail(ErrorCode::kNotFound, "this server adds no MCP servers");
}

Json ToolServerJson(const ToolServerSettings::Server& server) {
  Json json = {{"name", server.name}, {"is_configured", server.is_configured}};
  if (!server.url.empty()) json["url"] = server.url;
  if (!server.command.empty()) json["command"] = server.command;
  if (!server.headers.empty()) json["headers"] = server.headers;
  if (!server.variables.empty()) json["env"] = server.variables;
  if (!server.cwd.empty()) json["cwd"] = server.cwd;
  json["has_auth"] = server.has_auth;
  if (!server.source.empty()) json["source"] = server.source;
  if (!server.digest.empty()) json["digest"] = server.digest;
  if (!server.problem.empty()) json["problem"] = server.problem;
  return json;
}

Result<Outcome> ListToolServers(const HandlerContext& context, const Request& request) {
  ToolServerSettings* const settings = TRY(ToolServersOf(context));
  Json servers = Json::array();
  for (const auto& each : TRY(settings->List())) servers.push_back(ToolServerJson(each));
  return JsonReply(
      {{"servers", std::move(servers)}, {"sealed", settings->is_sealed()}, {"is_local", request.is_local}});
}

Result<Outcome> AddToolServer(const HandlerContext& context, const Request& request) {
  auto wanted = TRY(ParseToolServerBody(request.body));
  wanted.name = request.captures.at(0);
  wanted.consent.is_local = request.is_local;
  return JsonReply(ToolServerJson(TRY(TRY(ToolServersOf(context))->Add(wanted))));
}

Result<Outcome> RemoveToolServer(const HandlerContext& context, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  const std::string& name = request.captures.at(0);
  TRY(TRY(ToolServersOf(context))->Remove(name, {.is_local = request.is_local, .digest = request.Query("digest")}));
  return JsonReply({{"status", "deleted"}, {"name", name}});
}

Result<Outcome> TestToolServer(const HandlerContext& context, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  const std::string& name = request.captures.at(0);
  auto says = TRY(TRY(ToolServersOf(context))->Test(name).map_error(OfToolServer));
  return JsonReply({{"name", name}, {"message", std::move(says)}});
}

Result<RuleSettings*> RulesOf(const HandlerContext& context) {
  if (RuleSettings* const rules = context.shared.options.rules) return rules;
  return Fail(ErrorCode::kNotFound, "this server adds no rules");
}

Json RuleJson(const RuleSettings::Rule& rule) {
  Json json = Json::object();
  if (!rule.name.empty()) json["rule"] = rule.name;
  if (!rule.id.empty()) json["id"] = rule.id;
  json["tool"] = rule.rule.tool;
  if (rule.rule.pattern) json["pattern"] = *rule.rule.pattern;
  json["action"] = ToString(rule.rule.action);
  json["means"] = rule.means;
  if (!rule.source.empty()) json["source"] = rule.source;
  if (!rule.digest.empty()) json["digest"] = rule.digest;
  if (!rule.problem.empty()) json["problem"] = rule.problem;
  return json;
}

Result<Outcome> ListRules(const HandlerContext& context, const Request& request) {
  RuleSettings* const settings = TRY(RulesOf(context));
  const auto workspace = TRY(WorkspaceInQuery(context.engine, request));
  Json rules = Json::array();
  for (const auto& each : TRY(settings->List(workspace->path))) rules.push_back(RuleJson(each));
  return JsonReply({{"rules", std::move(rules)}, {"is_local", request.is_local}});
}

Result<Outcome> AddRule(const HandlerContext& context, const Request& request) {
  auto wanted = TRY(ParseRuleBody(request.body));
  wanted.consent.is_local = request.is_local;
  return JsonReply(RuleJson(TRY(TRY(RulesOf(context))->Add(wanted))));
}

Result<Outcome> RemoveRule(const HandlerContext& context, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  const std::string& id = request.captures.at(0);
  TRY(TRY(RulesOf(context))->Remove(id, {.is_local = request.is_local, .digest = request.Query("digest")}));
  return JsonReply({{"status", "deleted"}, {"id", id}});
}

}  // namespace

void AddSettingsRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context);
  const auto add = [&](const char* method, const char* path, auto handler, Lane lane = Lane::kWork) {
    router.Add(method, path, with(handler), lane, BodyKind::kJson, Access::kOperator);
  };
  add("GET", "/tools/servers", ListToolServers);
  add("PUT", "/tools/servers/*", AddToolServer);
  add("DELETE", "/tools/servers/*", RemoveToolServer);
  add("POST", "/tools/servers/*/test", TestToolServer, Lane::kRemote);
  add("POST", "/tools/servers/*/login", BeginServerLogin, Lane::kRemote);
  add("POST", "/tools/servers/*/logout", LogOutAtServer);
  add("GET", "/rules", ListRules);
  add("POST", "/rules", AddRule);
  add("DELETE", "/rules/*", RemoveRule);
}

}  // namespace reprise
