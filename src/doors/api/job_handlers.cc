#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "wire/error_response.h"
#include "wire/message.h"
#include "wire/request_values.h"

namespace reprise {
namespace {

Json ToJson(const Job& job) {
  Json json{{"id", job.id}, {"command", job.command}, {"running", !job.end}, {"output_bytes", job.output_bytes}};
  json["started_at"] = job.started_at == Timestamp{} ? Json(nullptr) : Json(FormatTimestamp(job.started_at));
  json["ended_at"] = job.ended_at ? Json(FormatTimestamp(*job.ended_at)) : Json(nullptr);
  if (job.end) json["end"] = job.end->reason;
  if (job.end && job.end->status) json["status"] = *job.end->status;
  if (job.end && !job.end->message.empty()) json["message"] = job.end->message;
  if (!job.kept.empty()) json["kept"] = job.kept;
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

}  // namespace

void AddJobRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("GET", "/chats/*/jobs", with(List));
  router.Add("GET", "/chats/*/jobs/*", with(Read));
  router.Add("POST", "/chats/*/jobs/*/stop", with(Stop));
}

}  // namespace reprise
