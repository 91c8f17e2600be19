#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "approval/rules.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "doors/api/bodies.h"
#include "doors/api/metrics.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/api/server.h"
#include "reprise/audio.h"
#include "reprise/timestamp.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise {

namespace {

std::string_view StateName(ToolServer::State state) {
  switch (state) {
    case ToolServer::State::kConnecting:
      return "connecting";
    case ToolServer::State::kReady:
      return "ready";
    case ToolServer::State::kFailed:
      return "failed";
  }
  return "failed";
}

// The configured rules that apply to the tool.
Json RulesFor(const ToolRules& rules, const Tool& tool) {
  Json list = Json::array();
  for (std::size_t i = 0; rules && i < rules->size(); ++i) {
    const ToolRule& rule = (*rules)[i];
    if (!SpeaksOf(rule, tool.traits().spec.name)) continue;
    Json& json = list.emplace_back(
        Json{{"rule", RuleName(i)}, {"action", ToString(rule.action)}, {"means", RuleMeaning(rule, tool)}});
    if (rule.pattern) json["pattern"] = *rule.pattern;
  }
  return list;
}

std::string_view LoginName(ToolServer::Login login) {
  switch (login) {
    case ToolServer::Login::kNotNeeded:
      return "not_needed";
    case ToolServer::Login::kLoggedOut:
      return "logged_out";
    case ToolServer::Login::kLoggedIn:
      return "logged_in";
  }
  return "not_needed";
}

}  // namespace

Result<std::shared_ptr<const WorkspaceParts>> WorkspaceInQuery(const Engine& engine, const Request& request) {
  if (const auto path = request.Query("workspace")) return engine.OpenWorkspace(*path);
  return engine.WorkspaceOf(TRY(ChatInQuery(request)));
}

namespace {

Result<Outcome> Tools(const HandlerContext& context, const Request& request) {
  const auto workspace = TRY(WorkspaceInQuery(context.engine, request));
  const auto set = workspace->tools.Current();
  const FolderSettings* const own = workspace->settings;
  const EngineOptions& options = own != nullptr ? own->options : context.engine.options();
  const ToolRules rules_now = context.engine.RulesIn(*workspace);
  const auto left_out = (own != nullptr ? own->models : context.engine.models()).LeftOutTools();
  Json tools = Json::array(), read_only = Json::array(), read_write = Json::array();
  for (const Tool* tool : set->tools()) {
    const ToolTraits& traits = tool->traits();
    auto parameters = ParseJson(traits.spec.parameters);
    tools.push_back({{"name", traits.spec.name},
                     {"description", traits.spec.description},
                     {"parameters", parameters ? std::move(*parameters) : Json::object()},
                     {"read_only", traits.read_only},
                     {"requires_approval", traits.asks_each_time || set->RequiresApproval(*tool)}});
    if (!traits.lacks.empty()) tools.back()["lacks"] = traits.lacks;
    Json rules = RulesFor(rules_now, *tool);
    if (!rules.empty()) tools.back()["rules"] = std::move(rules);
    for (const LeftOutTool& each : left_out) {
      if (each.tool != traits.spec.name) continue;
      tools.back()["left_out"].push_back({{"model", each.model}, {"reason", each.reason}});
    }
    (traits.read_only ? read_only : read_write).push_back(traits.spec.name);
  }
  Json servers = Json::array();
  for (const ToolServer& server : workspace->tools.Servers()) {
    servers.push_back({{"name", server.name},
                       {"state", StateName(server.state)},
                       {"message", server.message},
                       {"tools", server.tools},
                       {"login", LoginName(server.login)}});
  }
  Json body = {{"tools", std::move(tools)},
               {"read_only", std::move(read_only)},
               {"read_write", std::move(read_write)},
               {"servers", std::move(servers)},
               {"approval_mode", ToString(options.approval_mode)}};
  if (!workspace->path.empty()) body["workspace"] = workspace->path;
  return Reply{.body = DumpJson(body)};
}

// What a provider refuses, or fails at, must not look like a refusal of this request.
Error OfProvider(Error error) {
  if (error.code == ErrorCode::kProvider) error.code = ErrorCode::kUnavailable;
  return error;
}

Result<ProviderConnections*> ConnectionsOf(const HandlerContext& context) {
  if (ProviderConnections* const providers = context.shared.options.providers) return providers;
  return Fail(ErrorCode::kNotFound, "this server connects no providers");
}

Result<Outcome> ListProviders(const HandlerContext& context, const Request&) {
  ProviderConnections* const providers = TRY(ConnectionsOf(context));
  Json list = Json::array();
  for (const auto& each : TRY(providers->List())) {
    list.push_back({{"name", each.name},
                    {"type", each.type},
                    {"base_url", each.base_url},
                    {"is_configured", each.is_configured},
                    {"has_key", each.has_key}});
  }
  return JsonReply({{"providers", std::move(list)}, {"sealed", providers->is_sealed()}});
}

Result<Outcome> ConnectProvider(const HandlerContext& context, const Request& request) {
  auto wanted = TRY(ParseProviderBody(request.body));
  wanted.name = request.captures.at(0);
  const std::size_t models = TRY(TRY(ConnectionsOf(context))->Connect(wanted).map_error(OfProvider));
  return JsonReply({{"name", wanted.name}, {"models", models}});
}

Result<Outcome> DisconnectProvider(const HandlerContext& context, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  TRY(TRY(ConnectionsOf(context))->Disconnect(request.captures.at(0)));
  return JsonReply({{"status", "deleted"}, {"name", request.captures.at(0)}});
}

Result<Outcome> Models(const HandlerContext& context) {
  const Audio* audio = context.engine.audio();
  return JsonReply(ModelList(context.engine.models(), context.engine.options().prices,
                             audio ? audio->transcription_model() : "", audio ? audio->speech_model() : "",
                             audio ? audio->talk_model() : ""));
}

constexpr std::size_t kUsualEntries = 100, kMostEntries = 1000;

Result<Outcome> Audit(const HandlerContext& context, const Request& request) {
  const auto limit = TRY(PageLimit(request, kUsualEntries, kMostEntries));
  const auto after = TRY(AuditCursor(request));
  AuditLog::Page page;
  if (const AuditLog* log = context.engine.audit()) page = TRY(log->Read(after, limit));
  Json problems = Json::array();
  for (const auto& each : page.problems) problems.push_back({{"kind", each.kind}, {"message", each.message}});
  return Reply{.body = R"({"entries":[)" + Joined(page.lines, ",") + R"(],"next":)" +
                       (page.next ? std::to_string(*page.next) : "null") + R"(,"ok":)" +
                       (page.problems.empty() ? "true" : "false") + R"(,"problems":)" + DumpJson(problems) + "}"};
}

Result<Outcome> UsedToday(const HandlerContext& context) {
  const auto tokens = context.engine.UsedToday();
  const std::int64_t limit = context.engine.options().budget.max_tokens_per_day;
  return JsonReply({{"day", FormatTimestamp(std::chrono::floor<std::chrono::days>(Now())).substr(0, 10)},
                    {"tokens", tokens ? Json(*tokens) : Json(nullptr)},
                    {"limit", limit > 0 ? Json(limit) : Json(nullptr)}});
}

constexpr int kUsualDays = 30, kMostDays = 366;

Result<Outcome> UsageByDay(Engine& engine, const Request& request) {
  const auto days = request.Query("days");
  const auto number = days ? ParseNumber<int>(*days) : kUsualDays;
  if (!number || *number < 1 || *number > kMostDays) {
    return Fail(Reason::kInvalidParameter, "\"days\" must be a number from 1 to " + std::to_string(kMostDays));
  }
  const auto today = std::chrono::floor<std::chrono::days>(Now());
  const auto report = TRY(engine.GetUsageSince(today - std::chrono::days(*number - 1)));
  const PriceTable& prices = engine.options().prices;
  Json body = {{"days", Json::array()}, {"chats", Json::array()}, {"complete", report.complete}};
  for (const auto& [day, usage] : report.days) {
    body["days"].push_back({{"day", day}, {"usage", UsageBody(usage, prices)}});
  }
  if (request.Query("user")) return JsonReply(body);  // an admin sees use and not content, and a title is content
  for (const auto& each : report.chats) {
    body["chats"].push_back(
        {{"chat_id", each.chat.str()}, {"title", each.title}, {"usage", UsageBody(each.models, prices)}});
  }
  return JsonReply(body);
}

// An admin sees the users of the org; the operator sees all.
Result<Outcome> People(const HandlerContext& context, const Request& request) {
  Json users = Json::array();
  const auto& list = context.shared.options.tenants.list;
  const auto known = list ? list() : std::vector<Principal>();
  for (const Principal& each : known) {
    if (request.principal.is_tenant() && each.org != request.principal.org) continue;
    users.push_back({{"org", each.org}, {"user", each.user}});
  }
  return JsonReply({{"users", std::move(users)}});
}

Result<Outcome> Metrics(const HandlerContext& context) {
  return Reply{.body = PrometheusText(context.shared.site.CollectMetrics()),
               .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace

void AddServiceRoutes(Router& router, const HandlerContext& context) {
  const auto add = [&](std::string_view path, Result<Outcome> (*handler)(const HandlerContext&), Access access,
                       Lane lane = Lane::kControl) {
    router.Add(
        "GET", path, [&context, handler](const Request&) { return handler(context); }, lane, BodyKind::kJson, access);
  };
  add(
      "/healthz", [](const HandlerContext&) -> Result<Outcome> { return Reply{.body = R"({"status":"ok"})"}; },
      Access::kAnybody);
  // A stopping server answers 503 before it calls any handler.
  add(
      "/readyz",
      [](const HandlerContext& c) -> Result<Outcome> {
        const ServerOptions& options = c.shared.options;
        if (options.ready) TRY(options.ready());
        Json body = {{"status", "ready"}};
        for (const Error& error : options.failing ? options.failing() : std::vector<Error>()) {
          body["failing"].push_back({{"code", error.reason}, {"message", error.message}});
        }
        return Reply{.body = DumpJson(body)};
      },
      Access::kAnybody);
  add("/metrics", Metrics, Access::kOperator);
  add(
      "/openapi.json",
      [](const HandlerContext& c) -> Result<Outcome> { return Reply{.body = std::string(c.shared.options.openapi)}; },
      Access::kTenant);
  add("/models", Models, Access::kTenant, Lane::kRemote);  // may ask the providers
  add("/usage", UsedToday, Access::kTenantOrAdmin, Lane::kWork);
  const auto with = HandlersOf(context);
  router.Add("GET", "/usage/days", HandlersOf(context.engine)(UsageByDay), Lane::kLong, BodyKind::kJson,
             Access::kTenantOrAdmin);
  router.Add("GET", "/tools", with(Tools), Lane::kWork);  // opens the chat's folder
  router.Add("GET", "/providers", with(ListProviders), Lane::kWork, BodyKind::kJson, Access::kOperator);
  router.Add("PUT", "/providers/*", with(ConnectProvider), Lane::kRemote, BodyKind::kJson, Access::kOperator);
  router.Add("DELETE", "/providers/*", with(DisconnectProvider), Lane::kWork, BodyKind::kJson, Access::kOperator);
  router.Add("GET", "/audit", with(Audit), Lane::kLong, BodyKind::kJson, Access::kTenantOrAdmin);
  router.Add("GET", "/users", with(People), Lane::kWork, BodyKind::kJson, Access::kOrgAdmin);
}

namespace {

Json ListOf(const ProjectInstructions* instructions) {
  Json files = Json::array();
  for (const auto& file : instructions ? instructions->List() : std::vector<ProjectInstructions::File>()) {
    Json entry = {{"path", file.path}, {"kind", ToString(file.kind)}, {"state", ToString(file.state)}};
    if (!file.name.empty()) entry["name"] = file.name;
    if (!file.description.empty()) entry["description"] = file.description;
    if (file.digest.empty()) {
      entry["problem"] = file.problem;
    } else {
      entry["digest"] = file.digest;
      entry["text"] = file.text;
    }
    files.push_back(std::move(entry));
  }
  return {{"files", std::move(files)}};
}

Result<Outcome> List(const HandlerContext& context, const Request& request) {
  const auto workspace = TRY(WorkspaceInQuery(context.engine, request));
  return JsonReply(ListOf(workspace->instructions));
}

Result<Outcome> Trust(const HandlerContext& context, const Request& request) {
  const auto body = TRY(ParseTrustInstructionsBody(request.body));
  const auto workspace = TRY(WorkspaceInQuery(context.engine, request));
  ProjectInstructions* const instructions = workspace->instructions;
  if (instructions == nullptr) {
    return Fail(Reason::kNoSuchFile, "this server tells models of no instructions");
  }
  TRY(instructions->Allow(body.path, body.digest));
  return JsonReply(ListOf(instructions));
}

Result<Outcome> Expand(const HandlerContext& context, const Request& request) {
  const auto body = TRY(ParseExpandCommandBody(request.body));
  const auto workspace = TRY(WorkspaceInQuery(context.engine, request));
  if (workspace->instructions == nullptr) {
    return Fail(Reason::kNoSuchCommand, "this server has no commands of folders");
  }
  const auto expanded = TRY(workspace->instructions->Expand(body.command, body.arguments));
  Json reply = {{"user_message", expanded.message}};
  if (!expanded.model.empty()) reply["model"] = expanded.model;
  return JsonReply(reply);
}

}  // namespace

void AddInstructionRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context);
  router.Add("GET", "/instructions", with(List), Lane::kWork, BodyKind::kJson, Access::kOperator);
  router.Add("POST", "/instructions/trust", with(Trust), Lane::kWork, BodyKind::kJson, Access::kOperator);
  router.Add("POST", "/instructions/expand", with(Expand), Lane::kWork, BodyKind::kJson, Access::kOperator);
}

}  // namespace reprise
