#include "http/editor_handlers.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "http/error_response.h"
#include "http/requests.h"

namespace reprise {
namespace {

Result<bool> Flag(const Request& request, const char* name, bool otherwise) {
  const auto given = request.Query(name);
  if (!given) return otherwise;
  if (*given == "true" || *given == "false") return *given == "true";
  return Fail(Error{.code = ErrorCode::kInvalidArgument,
                    .reason = "invalid_parameter",
                    .message = std::string("\"") + name + "\" must be true or false"});
}

Result<Outcome> Connect(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  EditorAbilities abilities;
  abilities.reads = TRY(Flag(request, "reads", abilities.reads));
  abilities.writes = TRY(Flag(request, "writes", abilities.writes));
  auto connected = TRY(engine.ConnectEditor(chat, abilities));
  return FeedReply{.log = std::move(connected.log), .hold = std::move(connected.hold)};
}

Result<Outcome> Offer(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  auto tools = TRY(ParseEditorTools(request.body));
  const std::size_t taken = TRY(engine.OfferEditorTools(chat, std::move(tools)));
  return JsonReply({{"status", "processed"}, {"tools", taken}});
}

Result<Outcome> Answer(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  auto answer = TRY(ParseEditorAnswer(request.body));
  const std::string& id = request.captures.at(1);
  TRY(engine.AnswerEditor(chat, id, std::move(answer)));
  return JsonReply({{"status", "processed"}, {"request_id", id}});
}

}  // namespace

void AddEditorRoutes(Router& router, const HandlerContext& context) {
  const auto with = [&engine = context.engine](Result<Outcome> (*handler)(Engine&, const Request&)) {
    return [&engine, handler](const Request& request) { return handler(engine, request); };
  };
  router.Add("GET", "/chats/*/editor", with(Connect));
  router.Add("PUT", "/chats/*/editor", with(Offer), Lane::kWork, BodyKind::kConversation);
  // While tools wait for it: not behind what they hold up.
  router.Add("POST", "/chats/*/editor/*", with(Answer), Lane::kControl, BodyKind::kConversation);
}

}  // namespace reprise
