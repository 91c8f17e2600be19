#include <nlohmann/json.hpp>
#include <utility>

#include "approval/decision.h"
#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/door.h"
#include "wire/request_values.h"

namespace reprise {

namespace {

Result<Reply> Answer(Engine& engine, ApprovalBody body, std::optional<Engine::InteractionRef> within) {
  const bool approved = body.answer.approved;
  TRY(engine.AnswerApproval(body.approval_id, std::move(body.answer), std::move(within)));
  const Json json = {{"status", "processed"}, {"approval_id", body.approval_id}, {"approved", approved}};
  return Reply{.body = DumpJson(json)};
}

Result<Reply> Answer(Engine& engine, RespondBody body, std::optional<Engine::InteractionRef> within) {
  TRY(engine.AnswerInput(body.request_id, std::move(body.answer), std::move(within)));
  return Reply{.body = DumpJson({{"status", "processed"}, {"request_id", body.request_id}})};
}

// Answers, then streams the events that follow if the client wants them.
template <typename Body>
Result<Outcome> AnswerAndFollow(Engine& engine, const Request& request, Body body,
                                const Engine::InteractionRef& within) {
  // Attaches before it answers, so that no event after the answer is missed.
  std::optional<EventSubscription> run;
  if (request.Accepts("text/event-stream")) {
    run = TRY(engine.Attach(within.chat_id, within.interaction_id, 0)).subscription;
  }
  const std::uint64_t now = run ? run->log->end().offset : 0;
  auto reply = TRY(Answer(engine, std::move(body), within));
  if (!run) return reply;
  engine.Listen(*run);
  StreamReply stream = StreamOf(*std::move(run));
  stream.offset = now;
  return stream;
}

// Answers a request of the interaction in the path.
template <typename Body>
Result<Outcome> AnswerWithin(Engine& engine, const Request& request, Result<Body> (*parse)(std::string_view)) {
  const auto within = TRY(RunInPath(request));
  auto body = TRY(parse(request.body));
  body.answer.answered_by = request.principal.user;
  return AnswerAndFollow(engine, request, std::move(body), within);
}

Result<Outcome> Approve(Engine& engine, const Request& request) {
  return AnswerWithin<ApprovalBody>(engine, request,
                                    [](std::string_view body) { return ParseApprovalBody(body, std::nullopt); });
}

Result<Outcome> Respond(Engine& engine, const Request& request) {
  return AnswerWithin(engine, request, ParseRespondBody);
}

Result<Outcome> AnswerAnywhere(Engine& engine, const Request& request) {
  auto body = TRY(ParseApprovalBody(request.body, request.captures.at(0)));
  body.answer.answered_by = request.principal.user;
  const auto pending = TRY(engine.FindApproval(body.approval_id));
  return AnswerAndFollow(engine, request, std::move(body),
                         Engine::InteractionRef{pending.chat_id, pending.interaction_id});
}

Result<Outcome> ListApprovals(Engine& engine, const Request& /*request*/) {
  Json approvals = Json::array();
  for (const PendingApproval& approval : engine.PendingApprovals()) approvals.push_back(ToJson(approval));
  Json inputs = Json::array();
  for (const PendingInput& input : engine.PendingInputs()) inputs.push_back(ToJson(input));
  return Reply{.body = DumpJson({{"approvals", std::move(approvals)}, {"inputs", std::move(inputs)}})};
}

// Reads the file anew each time, so that a person judges its current content. Nothing of it is kept here.
Result<Outcome> PreviewChange(Engine& engine, const Request& request) {
  auto change = TRY(engine.PreviewChange(request.captures.at(0)));
  const auto text = [](std::optional<std::string>& each) { return each ? Json(*std::move(each)) : Json(nullptr); };
  const auto json = [&](FileChange& each) {
    const bool exists = each.before.has_value();
    return Json{
        {"path", std::move(each.path)}, {"before", text(each.before)}, {"after", text(each.after)}, {"exists", exists}};
  };
  Json body = json(change);
  for (FileChange& each : change.more) body["more"].push_back(json(each));
  return Reply{.body = DumpJson(body)};
}

}  // namespace

void AddApprovalRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("POST", "/chats/*/interactions/*/approve", with(Approve), Lane::kControl);
  router.Add("POST", "/chats/*/interactions/*/respond", with(Respond), Lane::kControl);
  router.Add("GET", "/approvals", with(ListApprovals), Lane::kControl);
  router.Add("POST", "/approvals/*", with(AnswerAnywhere), Lane::kControl);
  router.Add("GET", "/approvals/*/change", with(PreviewChange));  // reads a file, so not on control threads
}

namespace {

const Grant& GrantIn(const Grant& grant) { return grant; }
const Grant& GrantIn(const StandingGrant& grant) { return grant.grant; }

template <typename T>
Result<Outcome> ListOf(Engine& engine, const std::optional<ChatId>& chat, const Result<std::vector<T>>& grants) {
  if (!grants) return Fail(grants.error());
  const auto workspace = TRY(engine.WorkspaceOf(chat));
  const auto tools = workspace->tools.Current();
  Json list = Json::array();
  for (const T& each : *grants) {
    Json& json = list.emplace_back(ToJson(each));
    const Grant& grant = GrantIn(each);
    if (!json.contains("uses")) json["uses"] = 0;
    // A grant covers nothing if its tool no longer exists.
    const Tool* const tool = grant.pattern.empty() ? nullptr : tools->Find(grant.tool_name);
    if (tool == nullptr) continue;
    if (MeansAnother(grant, *tool)) json["outdated"] = true;
    if (!grant.means.empty()) continue;  // shown as it was agreed to
    if (auto means = tool->MeaningOf(grant.pattern, PatternUse::kAllow)) json["means"] = *std::move(means);
  }
  return Reply{.body = DumpJson({{"grants", std::move(list)}})};
}

Result<Outcome> Revoked(const Result<void>& revoked, const std::string& id) {
  if (!revoked) return Fail(revoked.error());
  return Reply{.body = DumpJson({{"status", "revoked"}, {"grant_id", id}})};
}

Result<Outcome> ListStandingGrants(Engine& engine, const Request& /*request*/) {
  return ListOf(engine, std::nullopt, engine.StandingGrants());
}

Result<Outcome> RevokeStandingGrant(Engine& engine, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  const std::string& id = request.captures.at(0);
  return Revoked(engine.RevokeStandingGrant(id), id);
}

Result<Outcome> ListGrantsInChat(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  return ListOf(engine, chat, engine.GetGrants(chat));
}

Result<Outcome> RevokeGrantInChat(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  TRY(ParseEmptyBody(request.body));
  const std::string& id = request.captures.at(1);
  return Revoked(engine.RevokeGrant(chat, id), id);
}

}  // namespace

void AddGrantRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("GET", "/grants", with(ListStandingGrants));
  router.Add("DELETE", "/grants/*", with(RevokeStandingGrant));
  router.Add("GET", "/chats/*/grants", with(ListGrantsInChat));
  router.Add("DELETE", "/chats/*/grants/*", with(RevokeGrantInChat));
}

}  // namespace reprise
