#include "http/service_handlers.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "http/error_response.h"
#include "http/model_list.h"
#include "http/requests.h"
#include "reprise/audio.h"

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

Result<Outcome> Tools(const HandlerContext& context) {
  const auto set = context.engine.tools().Current();
  Json tools = Json::array(), read_only = Json::array(), read_write = Json::array();
  for (const Tool* tool : set->tools()) {
    const ToolTraits& traits = tool->traits();
    auto parameters = ParseJson(traits.spec.parameters);
    tools.push_back({{"name", traits.spec.name},
                     {"description", traits.spec.description},
                     {"parameters", parameters ? std::move(*parameters) : Json::object()},
                     {"read_only", traits.read_only},
                     {"requires_approval", set->RequiresApproval(*tool)}});
    (traits.read_only ? read_only : read_write).push_back(traits.spec.name);
  }
  Json servers = Json::array();
  for (const ToolServer& server : context.engine.tools().Servers()) {
    servers.push_back({{"name", server.name},
                       {"state", StateName(server.state)},
                       {"message", server.message},
                       {"tools", server.tools}});
  }
  const EngineOptions& options = context.engine.options();
  Json body = {{"tools", std::move(tools)},
               {"read_only", std::move(read_only)},
               {"read_write", std::move(read_write)},
               {"servers", std::move(servers)},
               {"approval_mode", ToString(options.approval_mode)}};
  if (!options.workspace.empty()) body["workspace"] = options.workspace;
  return Reply{.body = DumpJson(body)};
}

Result<Outcome> Models(const HandlerContext& context) {
  const Audio* audio = context.engine.audio();
  return JsonReply(ModelList(context.engine.models(), context.engine.options().prices,
                             audio ? audio->transcription_model() : "", audio ? audio->speech_model() : ""));
}

constexpr std::size_t kUsualEntries = 100, kMostEntries = 1000;

Result<Outcome> Audit(const HandlerContext& context, const Request& request) {
  const auto limit = TRY(PageLimit(request, kUsualEntries, kMostEntries));
  const auto after = TRY(AuditCursor(request));
  AuditLog::Page page;
  if (const AuditLog* log = context.engine.audit()) {
    auto read = TRY(log->Read(after, limit));
    page = std::move(read);
  }
  std::string entries;
  for (const std::string& line : page.lines) entries += (entries.empty() ? "" : ",") + line;
  return Reply{.body = R"({"entries":[)" + entries + R"(],"next":)" +
                       (page.next ? std::to_string(*page.next) : "null") + "}"};
}

Result<Outcome> Metrics(const HandlerContext& context) {
  return Reply{.body = PrometheusText(CollectMetrics(context.engine, context.metrics)),
               .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace

void AddServiceRoutes(Router& router, const HandlerContext& context) {
  const auto add = [&](std::string_view path, Result<Outcome> (*handler)(const HandlerContext&),
                       Lane lane = Lane::kControl) {
    router.Add(
        "GET", path, [&context, handler](const Request&) { return handler(context); }, lane);
  };
  add("/healthz", [](const HandlerContext&) -> Result<Outcome> { return Reply{.body = R"({"status":"ok"})"}; });
  // A server that is stopping answers 503 before any handler is asked.
  add("/readyz", [](const HandlerContext& c) -> Result<Outcome> {
    if (c.ready) TRY(c.ready());
    Json body = {{"status", "ready"}};
    for (const Error& error : c.failing ? c.failing() : std::vector<Error>()) {
      body["failing"].push_back({{"code", error.reason}, {"message", error.message}});
    }
    return Reply{.body = DumpJson(body)};
  });
  add("/metrics", Metrics);
  add("/openapi.json", [](const HandlerContext& c) -> Result<Outcome> { return Reply{.body = c.openapi}; });
  add("/tools", Tools);
  add("/models", Models, Lane::kRemote);  // may ask the providers
  router.Add("GET", "/audit", [&context](const Request& request) { return Audit(context, request); });
}

}  // namespace reprise
