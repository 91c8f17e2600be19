#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "doors/api/bodies.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/door.h"
#include "doors/translator.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise {
namespace {

constexpr std::size_t kUsualEvents = 1'000, kMostEvents = 10'000;

std::string QueuedFrame(const WaitingRun& waiting) {
  const std::string id = waiting.queue_id();
  return "event: queued\ndata: " + DumpJson({{"id", id.empty() ? Json(nullptr) : Json(id)}}) + "\n\n";
}

// Listens to the run while the client waits for it.
Outcome Defer(EventSubscription run, std::function<Result<Reply>()> finish) {
  const auto held = std::make_shared<EventSubscription>(std::move(run));
  return DeferredReply{.log = held->log, .hold = held, .finish = std::move(finish)};
}

// Writes the text directly, because the state of a long chat is megabytes and a Json of it takes several times as much.
Reply WholeInteraction(const Interaction& interaction) {
  Reply reply;
  AppendJson(reply.body, interaction);
  return reply;
}

// The answer to a request that started a run: its events, or the finished interaction if the client wants no stream.
Result<Outcome> Follow(Engine& engine, Result<EventSubscription> started, bool stream) {
  if (started) engine.Listen(*started);  // a repeated request gets the run that it began before
  if (!started) return Fail(std::move(started.error()));
  if (stream) {
    std::string preamble = started->waiting ? QueuedFrame(*started->waiting) : std::string();
    StreamReply reply = StreamOf(*std::move(started));
    reply.preamble = std::move(preamble);
    return reply;
  }
  auto finish = [&engine, chat = started->chat_id, id = started->interaction_id,
                 waiting = started->waiting]() -> Result<Reply> {
    const auto which = TRY(id ? Result<InteractionId>(*id) : waiting->outcome());
    auto interaction = TRY(engine.GetInteraction(chat, which));
    if (!IsFinished(interaction.status)) {
      return Fail(Reason::kStopping, "the server is stopping; the interaction waits for an answer");
    }
    return WholeInteraction(interaction);
  };
  return Defer(std::move(*started), std::move(finish));
}

Result<Outcome> Start(Engine& engine, const Request& request) {
  auto chat = TRY(ChatInPath(request));
  auto body = TRY(ParseStartBody(request.body));
  body.request.trace_parent = TraceParentOf(request);
  body.request.request = TRY(ClientRequestOf(request));
  auto started = engine.Start(chat, std::move(body.request));
  // Not 503 like other overload, because it is this client that must send less.
  if (!started && started.error().Is(Reason::kQueueFull)) {
    return ProtocolErrorReply(429, started.error().reason, started.error().message);
  }
  return Follow(engine, std::move(started), body.stream);
}

Json ToJson(const EditPreview& preview) {
  Json superseded = Json::array(), effects = Json::array();
  for (const InteractionId id : preview.superseded) superseded.push_back(id.str());
  for (const auto& effect : preview.side_effects) {
    effects.push_back({{"interaction_id", effect.interaction_id.str()},
                       {"call_id", effect.call_id},
                       {"tool_name", effect.tool_name},
                       {"tool_input", effect.tool_input},
                       {"path", effect.path ? Json(*effect.path) : Json(nullptr)},
                       {"failed", effect.failed}});
  }
  Json json = {{"dry_run", true}, {"superseded", std::move(superseded)}, {"side_effects", std::move(effects)}};
  AddTo(json, preview.restore);
  return json;
}

Result<Outcome> Edit(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  auto body = TRY(ParseEditBody(request.body));
  if (body.dry_run) {
    auto preview = TRY(engine.PreviewEdit(target.chat_id, target.interaction_id));
    return JsonReply(ToJson(preview));
  }
  body.request.trace_parent = TraceParentOf(request);
  body.request.request = TRY(ClientRequestOf(request));
  return Follow(engine, engine.Edit(target.chat_id, target.interaction_id, std::move(body.request)), body.stream);
}

Result<Outcome> Regenerate(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  auto body = TRY(ParseRegenerateBody(request.body, /*with_files=*/true));
  body.request.trace_parent = TraceParentOf(request);
  body.request.request = TRY(ClientRequestOf(request));
  return Follow(engine, engine.Regenerate(target.chat_id, target.interaction_id, std::move(body.request)), body.stream);
}

Result<Outcome> Compact(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  auto body = TRY(ParseRegenerateBody(request.body));
  body.request.trace_parent = TraceParentOf(request);
  body.request.request = TRY(ClientRequestOf(request));
  return Follow(engine, engine.Compact(chat, std::move(body.request)), body.stream);
}

Result<Outcome> Resume(Engine& engine, const Request& request) {
  auto target = TRY(RunInPath(request));
  auto body = TRY(ParseRegenerateBody(request.body));
  body.request.trace_parent = TraceParentOf(request);
  body.request.request = TRY(ClientRequestOf(request));
  return Follow(engine, engine.Resume(target.chat_id, target.interaction_id, std::move(body.request)), body.stream);
}

Result<Outcome> Cancel(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  TRY(ParseEmptyBody(request.body));
  const auto outcome = TRY(engine.Cancel(target.chat_id, target.interaction_id));
  if (!outcome.was_running) {
    return JsonReply({{"status", ToString(outcome.status)},
                      {"interaction_id", target.interaction_id.str()},
                      {"message", "Interaction had already finished"}});
  }
  return JsonReply({{"status", "cancelling"},
                    {"interaction_id", target.interaction_id.str()},
                    {"message", "Interaction will stop at next checkpoint"}});
}

Result<Outcome> GetInteraction(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  auto interaction = TRY(engine.GetInteraction(target.chat_id, target.interaction_id));
  return WholeInteraction(interaction);
}

Result<Outcome> Diff(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  const auto diffs = TRY(engine.DiffOf(target.chat_id, target.interaction_id, request.Query("call_id")));
  if (request.Accepts("application/json")) {
    Json files = Json::array();
    for (const FileDiff& diff : diffs.files) {
      Json file = reprise::ToJson(diff.change);
      file["path"] = diff.path;
      file["change"] = diff.change_name;
      file["diff"] = diff.unified;
      files.push_back(std::move(file));
    }
    Json body = {{"interaction_id", target.interaction_id.str()}, {"files", std::move(files)}};
    if (diffs.omitted > 0) body["omitted"] = diffs.omitted;
    if (diffs.unseen) body["unseen"] = true;
    return JsonReply(body);
  }
  Reply reply{.content_type = "text/x-diff; charset=utf-8"};
  if (diffs.omitted > 0) {
    // Programs that read diffs skip text before the first one.
    reply.body = "# and " + Counted(diffs.omitted, "more file") + ", of which nothing is recorded\n";
  }
  if (diffs.unseen) reply.body += "# what a call changed is not recorded\n";
  for (const FileDiff& diff : diffs.files) reply.body += diff.unified;
  return reply;
}

// The requests to models, without their bodies.
Result<Outcome> Requests(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  const RequestsOnRecord sent = TRY(engine.RequestsOf(target.chat_id, target.interaction_id));
  Json list = Json::array();
  const auto requests = sent.requests.value_or(std::vector<SentRequest>());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const SentRequest& each = requests[i];
    Json json = {{"round_index", each.round},
                 {"attempt", AttemptOf(requests, i)},
                 {"purpose", reprise::ToString(each.purpose)},
                 {"at", FormatTimestamp(each.at)},
                 {"model", each.model},
                 {"address", each.address},
                 {"digest", each.body.digest},
                 {"bytes", each.body.bytes}};
    if (!each.call_id.empty()) json["call_id"] = each.call_id;
    if (!sent.program.empty()) json["tools"] = ToJson(each.tools);
    if (const auto& response = each.response) {
      json["response"] = ToJson(*response, /*asked=*/{});
      if (response->error.empty()) json["response"]["finish"] = reprise::ToString(response->finish);
    }
    list.push_back(std::move(json));
  }
  Json body = {{"interaction_id", target.interaction_id.str()}, {"on_record", sent.requests.has_value()}};
  if (!sent.program.empty()) body["program"] = sent.program;
  body["requests"] = std::move(list);
  return JsonReply(body);
}

Json ToJson(const std::vector<ToldPart>& parts, bool is_json) {
  Json list = Json::array();
  for (const ToldPart& part : parts) {
    Json json = Json::object();
    if (!part.name.empty()) json["name"] = part.name;
    // What is too deep to be read stays text.
    json["content"] = is_json ? ParseJson(part.text).value_or(Json(part.text)) : Json(part.text);
    if (part.is_new) json["new"] = true;
    list.push_back(std::move(json));
  }
  return list;
}

Reply InPartsReply(const ToldRequest& told) {
  return JsonReply({{"system", ToJson(told.system, /*is_json=*/false)},
                    {"tools", ToJson(told.tools, /*is_json=*/true)},
                    {"parameters", ToJson(told.parameters, /*is_json=*/true)},
                    {"messages", ToJson(told.messages, /*is_json=*/true)},
                    {"gone", told.gone}});
}

// The body of one, with ?format=diff what is new in it, or with ?format=parts what it is made of.
Result<Outcome> RequestBody(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  const std::string format = request.Query("format").value_or("body");
  if (format != "body" && format != "diff" && format != "parts") {
    return Fail(Reason::kInvalidParameter, "\"format\" must be \"body\", \"diff\" or \"parts\"");
  }
  const auto index = ParseNumber<std::uint64_t>(request.captures.at(2));
  if (!index) return Fail(ErrorCode::kNotFound, "a request is named by its number, from 0");
  if (format == "parts") return InPartsReply(TRY(engine.ToldBy(target.chat_id, target.interaction_id, *index)));
  Reply reply{.body = TRY(engine.RequestBody(target.chat_id, target.interaction_id, *index))};
  if (format == "body") return reply;
  const auto sent = TRY(engine.RequestsOf(target.chat_id, target.interaction_id)).requests;
  Json before;
  const bool is_there = sent && *index < sent->size();  // nobody has deleted the chat meanwhile
  if (!is_there) return Fail(ErrorCode::kNotFound, "no such request is on record");
  if (const auto& place = (*sent)[*index].body.before) {
    const std::string body = TRY(engine.RequestBody(target.chat_id, place->interaction, place->index));
    before = TRY(ParseJson(body));
  }
  const Json now = TRY(ParseJson(reply.body));
  reply.body = DumpJson(Json::diff(before, now));
  reply.content_type = "application/json-patch+json";
  return reply;
}

Reply ReportReply(const ReplayReport& report, std::string_view mode, std::optional<InteractionId> again = {}) {
  Json json = ToJson(report);
  json["mode"] = mode;
  if (again) json["interaction_id"] = again->str();
  return JsonReply(json);
}

Result<Outcome> ReplayLive(Engine& engine, const InteractionRef& target, const Request& request) {
  const auto recorded = TRY(engine.GetInteraction(target.chat_id, target.interaction_id));
  StartRequest start{.model = recorded.model};
  start.request = TRY(ClientRequestOf(request));
  auto again = TRY(engine.Regenerate(target.chat_id, target.interaction_id, std::move(start)));
  auto finish = [&engine, target, id = again.interaction_id.value()]() -> Result<Reply> {
    auto report = TRY(engine.CompareReplay(target.chat_id, target.interaction_id, id));
    return ReportReply(report, "live", id);
  };
  return Defer(std::move(again), std::move(finish));
}

Result<Outcome> Replay(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  const auto body = TRY(ParseReplayBody(request.body));
  switch (body.mode) {
    case ReplayMode::kEvents:
      return StreamOf(TRY(engine.ReplayEvents(target.chat_id, target.interaction_id, body.speed)));
    case ReplayMode::kRecorded: {
      const auto report = TRY(engine.ReplayRecorded(target.chat_id, target.interaction_id, body.input));
      return ReportReply(report, "recorded");
    }
    case ReplayMode::kLive:
      return ReplayLive(engine, target, request);
  }
  return Fail(ErrorCode::kInternal, "no such mode");
}

Result<Outcome> WhatIf(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  auto started = engine.WhatIf(target.chat_id, target.interaction_id, TRY(ParseWhatIfBody(request.body)));
  if (!started && started.error().Is(Reason::kQueueFull)) {
    return ProtocolErrorReply(429, started.error().reason, started.error().message);
  }
  StreamReply reply = StreamOf(TRY(std::move(started)));
  reply.headers.clear();  // its events are nowhere else
  return reply;
}

std::string OpenFrame(const AttachedEvents& attached) {
  Json pending = Json::array();
  for (const PendingApproval& approval : attached.pending_approvals) pending.push_back(ToJson(approval));
  Json inputs = Json::array();
  for (const PendingInput& input : attached.pending_inputs) inputs.push_back(ToJson(input));
  const Json data = {{"status", ToString(attached.status)},
                     {"first_seq", attached.first_seq},
                     {"last_seq", attached.last_seq},
                     {"pending_approvals", std::move(pending)},
                     {"pending_inputs", std::move(inputs)}};
  return "event: stream_open\ndata: " + DumpJson(data) + "\n\n";
}

Result<Outcome> EventStreamOf(AttachedEvents attached) {
  const EventLog& log = *attached.subscription.log;
  const EventLog::View next = log.Read(attached.offset);
  if (next.end && next.bytes.empty()) return Reply{.status = 204};  // stops an EventSource from reconnecting
  const auto live_at = log.OffsetAfter(attached.last_seq);
  std::string preamble = OpenFrame(attached);
  StreamReply reply = StreamOf(std::move(attached.subscription));
  reply.offset = attached.offset;
  reply.preamble = std::move(preamble);
  reply.live_at = std::max(attached.offset, live_at.value_or(attached.offset));
  return reply;
}

// The events as one JSON document. Its members are the log's `data` lines, unchanged.
Reply EventPageOf(const AttachedEvents& attached, std::uint64_t after_seq, std::size_t limit) {
  const EventLog& log = *attached.subscription.log;
  const std::uint64_t end = log.end().offset;
  std::string body = "{\"events\":[";
  std::size_t count = 0;
  std::uint64_t last_seq = after_seq;
  for (std::uint64_t offset = attached.offset; offset < end && count < limit;) {
    std::string_view bytes = log.Read(offset).bytes;  // whole frames
    offset += bytes.size();
    while (!bytes.empty() && count < limit) {
      const auto event = TakeFrame(bytes);
      if (!event) continue;
      last_seq = event->seq;
      if (count++ > 0) body += ',';
      body += event->data;
    }
  }
  body += "],\"next_seq\":" + std::to_string(last_seq) + "}";  // after_seq of the next page
  return {.body = std::move(body)};
}

Result<Outcome> Events(Engine& engine, const Request& request) {
  const auto target = TRY(RunInPath(request));
  const auto after_seq = TRY(EventCursor(request));
  const auto limit = TRY(PageLimit(request, kUsualEvents, kMostEvents));
  auto attached = TRY(engine.Attach(target.chat_id, target.interaction_id, after_seq));
  if (request.Accepts("text/event-stream")) {
    engine.Listen(attached.subscription);
    return EventStreamOf(std::move(attached));
  }
  return EventPageOf(attached, after_seq, limit);
}

}  // namespace

void AddRunRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("POST", "/chats/*/interactions", with(Start));
  router.Add("POST", "/chats/*/interactions/*/edit", with(Edit));
  router.Add("POST", "/chats/*/interactions/*/regenerate", with(Regenerate));
  router.Add("POST", "/chats/*/compact", with(Compact));
  router.Add("POST", "/chats/*/interactions/*/resume", with(Resume));
  router.Add("POST", "/chats/*/interactions/*/replay", with(Replay), Lane::kLong);
  router.Add("POST", "/chats/*/interactions/*/what_if", with(WhatIf), Lane::kLong);
  router.Add("POST", "/chats/*/interactions/*/cancel", with(Cancel), Lane::kControl);
  router.Add("GET", "/chats/*/interactions/*", with(GetInteraction));
  router.Add("GET", "/chats/*/interactions/*/events", with(Events));
  router.Add("GET", "/chats/*/interactions/*/diff", with(Diff));
  router.Add("GET", "/chats/*/interactions/*/requests", with(Requests));
  router.Add("GET", "/chats/*/interactions/*/requests/*", with(RequestBody), Lane::kLong);
}

}  // namespace reprise
