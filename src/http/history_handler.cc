#include "http/history_handler.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/history.h"
#include "http/requests.h"
#include "http/usage_body.h"
#include "transcript/conversation_line.h"
#include "transcript/markdown.h"

namespace reprise {
namespace {

constexpr std::size_t kMostOnPage = 500;
// So much at least is made before it is sent. An interaction is not cut.
constexpr std::size_t kPieceBytes = 128 * 1024;

tl::unexpected<Error> Unfit(std::string message) {
  return Fail(Error{.code = ErrorCode::kInvalidArgument, .reason = "invalid_parameter", .message = std::move(message)});
}

Result<HistoryRange> ParseRange(const Request& request) {
  HistoryRange range;
  const std::string branches = request.Query("branches").value_or("head");
  if (branches != "head" && branches != "all") return Unfit("\"branches\" must be \"head\" or \"all\"");
  range.all_branches = branches == "all";
  if (request.Query("limit")) range.limit = TRY(PageLimit(request, kMostOnPage, kMostOnPage));
  if (const auto before = request.Query("before")) {
    const auto id = InteractionId::Parse(*before);
    if (!id) return Unfit("\"before\" must be an interaction's id");
    range.before = *id;
  }
  return range;
}

Result<HistoryStates> ParseStates(const Request& request) {
  const std::string state = request.Query("state").value_or("last");
  if (state == "last") return HistoryStates::kHead;
  if (state == "none") return HistoryStates::kNone;
  if (state == "all") return HistoryStates::kAll;
  return Unfit("\"state\" must be \"last\", \"none\" or \"all\"");
}

Result<Outcome> ReplyWith(Engine& engine, const ChatId& chat, const HistoryRange& range, HistoryStates states) {
  auto reader = TRY(engine.ReadHistory(chat, range, states));
  const HistoryReader& read = *reader;
  const auto body = std::make_shared<HistoryDocument>(
      std::move(reader), range.all_branches, [range, &read, &prices = engine.options().prices](Json& end) {
        if (range.is_whole()) {
          end["usage"] = UsageBody(read.usage(), prices);
        } else {
          const auto previous = read.previous();
          end["previous"] = previous ? Json(previous->str()) : Json(nullptr);
        }
      });
  auto first = TRY(body->Next(kPieceBytes));
  if (body->ended()) return Reply{.body = *std::move(first)};
  return PiecewiseReply{.first = *std::move(first), .next = [body] { return body->Next(kPieceBytes); }};
}

}  // namespace

Result<Outcome> GetHistory(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  for (const char* name : {"branches", "limit", "before", "state"}) {
    if (request.QueryCount(name) > 1) return Unfit("\"" + std::string(name) + "\" is there more than once");
  }
  const auto range = TRY(ParseRange(request));
  const auto states = TRY(ParseStates(request));
  return ReplyWith(engine, chat, range, states);
}

// As `reprise export` prints it.
Result<Outcome> Export(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const std::string format = request.Query("format").value_or("json");
  if (format == "json") return ReplyWith(engine, chat, {.all_branches = true}, HistoryStates::kAdded);
  const History history = TRY(engine.GetHistory(chat, /*all_branches=*/false));
  if (format == "markdown") {
    std::vector<MarkdownTurn> turns;
    for (const HistoryEntry& entry : history.entries) turns.push_back({&entry.interaction, entry.superseded});
    return Reply{.body = FormatMarkdown(history.summary, turns), .content_type = "text/markdown; charset=utf-8"};
  }
  if (format != "jsonl") return Unfit("\"format\" must be \"json\", \"jsonl\" or \"markdown\"");
  Reply reply{.content_type = "application/jsonl"};
  for (auto entry = history.entries.rbegin(); entry != history.entries.rend() && reply.body.empty(); ++entry) {
    const auto whole = TRY(engine.GetInteraction(chat, entry->interaction.id));
    if (whole.final_agent_state) reply.body = ConversationLine(*whole.final_agent_state);
  }
  return reply;
}

}  // namespace reprise
