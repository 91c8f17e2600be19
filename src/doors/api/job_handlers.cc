#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/public_address.h"
#include "base/text.h"
#include "base/try.h"
#include "doors/api/routes.h"
#include "doors/api/server.h"
#include "wire/error_response.h"
#include "wire/gate.h"
#include "wire/message.h"
#include "wire/request_values.h"

namespace reprise {
namespace {

Json ToJson(const JobPort& port) {
  Json json{{"port", port.port}, {"addresses", port.addresses}, {"state", ToString(port.state)}};
  if (!port.url.empty()) json["url"] = port.url;
  return json;
}

Json ToJson(const Job& job) {
  Json json{{"id", job.id}, {"command", job.command}, {"running", !job.end}, {"output_bytes", job.output_bytes}};
  json["started_at"] = job.started_at == Timestamp{} ? Json(nullptr) : Json(FormatTimestamp(job.started_at));
  json["ended_at"] = job.ended_at ? Json(FormatTimestamp(*job.ended_at)) : Json(nullptr);
  if (job.end) json["end"] = job.end->reason;
  if (job.end && job.end->status) json["status"] = *job.end->status;
  if (job.end && !job.end->message.empty()) json["message"] = job.end->message;
  if (!job.kept.empty()) json["kept"] = job.kept;
  if (!job.end) json["ports"] = Json::array();
  for (const JobPort& port : job.ports) json["ports"].push_back(ToJson(port));
  return json;
}

Result<Outcome> List(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  Json jobs = Json::array();
  for (const Job& job : TRY(engine.ListJobs(chat))) jobs.push_back(ToJson(job));
  return JsonReply({{"jobs", std::move(jobs)}});
}

Result<Outcome> Read(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto read = TRY(engine.ReadJob(chat, request.captures.at(1), TRY(AuditCursor(request))));
  Json json = ToJson(read.job);
  json["output"] = read.text;
  json["left_out"] = read.left_out;
  json["next"] = read.next;
  return JsonReply(std::move(json));
}

Result<Outcome> Stop(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  return JsonReply(ToJson(TRY(engine.StopJob(chat, request.captures.at(1)))));
}

Result<std::uint16_t> PortInPath(const Request& request) {
  const auto port = ParseNumber<std::uint16_t>(request.captures.at(2));
  if (!port || *port == 0) return Fail(Reason::kInvalidParameter, "the port must be a number from 1 to 65535");
  return *port;
}

// A port is opened on the server's own machine, for its user. A request with a token, or through a proxy, may come from
// anybody anywhere; without a token the gate has asked the kernel who sends it.
Result<void> CheckIsLocalUser(const SharedContext& shared, const Request& request) {
  const std::string* const host = request.head.Find("host");
  const auto authority = host ? ParseAuthority(*host) : std::nullopt;
  if (authority && IsLoopbackHost(authority->host) && !shared.options.token && !shared.options.people) return {};
  return Fail(Reason::kPortsNotAllowed,
              "ports of jobs open only for the user at the server's own machine, so not on a server with a token, for "
              "several people or behind a proxy");
}

Handler PortHandler(const HandlerContext& context, decltype(&Engine::OpenJobPort) change) {
  return [&engine = context.engine, &shared = context.shared, change](const Request& request) -> Result<Outcome> {
    const auto chat = TRY(ChatInPath(request));
    const std::uint16_t port = TRY(PortInPath(request));
    TRY(engine.GetListEntry(chat));  // somebody else's chat is not found, whoever asks
    TRY(CheckIsLocalUser(shared, request));
    return JsonReply(ToJson(TRY((engine.*change)(chat, request.captures.at(1), port, request.principal.user))));
  };
}

}  // namespace

void AddJobRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("GET", "/chats/*/jobs", with(List));
  router.Add("GET", "/chats/*/jobs/*", with(Read));
  router.Add("POST", "/chats/*/jobs/*/stop", with(Stop));
  router.Add("POST", "/chats/*/jobs/*/ports/*/open", PortHandler(context, &Engine::OpenJobPort));
  router.Add("POST", "/chats/*/jobs/*/ports/*/close", PortHandler(context, &Engine::CloseJobPort));
}

}  // namespace reprise
