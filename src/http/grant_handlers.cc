#include "http/grant_handlers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "approval/decision.h"
#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "http/requests.h"

namespace reprise {
namespace {

const Grant& GrantIn(const Grant& grant) { return grant; }
const Grant& GrantIn(const StandingGrant& grant) { return grant.grant; }

template <typename T>
Result<Outcome> ListOf(Engine& engine, const Result<std::vector<T>>& grants) {
  if (!grants) return Fail(grants.error());
  const auto tools = engine.tools().Current();
  Json list = Json::array();
  for (const T& each : *grants) {
    Json& json = list.emplace_back(ToJson(each));
    const Grant& grant = GrantIn(each);
    if (!json.contains("uses")) json["uses"] = 0;
    // Of a tool that is not there any more nothing is covered.
    const Tool* const tool = grant.pattern.empty() ? nullptr : tools->Find(grant.tool_name);
    if (tool == nullptr) continue;
    if (MeansAnother(grant, *tool)) json["outdated"] = true;
    if (!grant.means.empty()) continue;  // it is listed as it was agreed to
    if (auto means = tool->MeaningOf(grant.pattern, PatternUse::kAllow)) json["means"] = *std::move(means);
  }
  return Reply{.body = DumpJson({{"grants", std::move(list)}})};
}

Result<Outcome> Revoked(const Result<void>& revoked, const std::string& id) {
  if (!revoked) return Fail(revoked.error());
  return Reply{.body = DumpJson({{"status", "revoked"}, {"grant_id", id}})};
}

Result<Outcome> ListStandingGrants(Engine& engine, const Request& /*request*/) {
  return ListOf(engine, engine.StandingGrants());
}

Result<Outcome> RevokeStandingGrant(Engine& engine, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  const std::string& id = request.captures.at(0);
  return Revoked(engine.RevokeStandingGrant(id), id);
}

Result<Outcome> ListGrantsInChat(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  return ListOf(engine, engine.GetGrants(chat));
}

Result<Outcome> RevokeGrantInChat(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  TRY(ParseEmptyBody(request.body));
  const std::string& id = request.captures.at(1);
  return Revoked(engine.RevokeGrant(chat, id), id);
}

}  // namespace

void AddGrantRoutes(Router& router, const HandlerContext& context) {
  const auto with = [&engine = context.engine](Result<Outcome> (*handler)(Engine&, const Request&)) {
    return [&engine, handler](const Request& request) { return handler(engine, request); };
  };
  router.Add("GET", "/grants", with(ListStandingGrants));
  router.Add("DELETE", "/grants/*", with(RevokeStandingGrant));
  router.Add("GET", "/chats/*/grants", with(ListGrantsInChat));
  router.Add("DELETE", "/chats/*/grants/*", with(RevokeGrantInChat));
}

}  // namespace reprise
