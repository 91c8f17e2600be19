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

Result<Outcome> Connect(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const std::string writes = request.Query("writes").value_or("false");
  if (writes != "true" && writes != "false") {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "invalid_parameter",
                      .message = "\"writes\" must be true or false"});
  }
  auto connected = TRY(engine.ConnectEditor(chat, writes == "true"));
  return FeedReply{.log = std::move(connected.log), .hold = std::move(connected.hold)};
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
  // While tools wait for it: not behind what they hold up.
  router.Add("POST", "/chats/*/editor/*", with(Answer), Lane::kControl, BodyKind::kConversation);
}

}  // namespace reprise
