#include "http/history_handler.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
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

// The body: what is known before anything is read, the interactions, and what came out by reading them.
class HistoryBody {
 public:
  HistoryBody(std::unique_ptr<HistoryReader> reader, const HistoryRange& range, const PriceTable& prices)
      : reader_(std::move(reader)), range_(range), prices_(prices) {}

  // nullopt: that was all.
  Result<std::optional<std::string>> Next() {
    if (ended_) return std::nullopt;
    std::string piece;
    if (!begun_) piece = Begin();
    while (!ended_ && piece.size() < kPieceBytes) {
      auto entry = TRY(reader_->Next());
      if (entry) {
        Add(*std::move(entry), piece);
      } else {
        End(piece);
      }
    }
    return std::optional(std::move(piece));
  }
  bool ended() const { return ended_; }

 private:
  std::string Begin() {
    begun_ = true;
    std::string piece = DumpJson(ToJson(reader_->summary()));
    piece.back() = ',';
    return piece += "\"interactions\":[";
  }

  void Add(HistoryReader::Entry entry, std::string& piece) {
    if (!first_) piece += ',';
    first_ = false;
    piece += entry.json;
    if (!range_.all_branches) return;
    piece.back() = ',';
    piece += entry.superseded ? "\"superseded\":true}" : "\"superseded\":false}";
  }

  void End(std::string& piece) {
    ended_ = true;
    Json end = Json::object();
    if (!reader_->damaged().empty()) end["damaged"] = Json::array();
    for (const DamagedInteraction& each : reader_->damaged()) {
      end["damaged"].push_back(ToJson(each));
    }
    if (range_.is_whole()) {
      end["usage"] = UsageBody(reader_->usage(), prices_);
    } else {
      const auto previous = reader_->previous();
      end["previous"] = previous ? Json(previous->str()) : Json(nullptr);
    }
    const std::string members = DumpJson(end);
    piece.append("],").append(members, 1);
  }

  const std::unique_ptr<HistoryReader> reader_;
  const HistoryRange range_;
  const PriceTable& prices_;
  bool begun_ = false, first_ = true, ended_ = false;
};

Result<Outcome> ReplyWith(Engine& engine, const ChatId& chat, const HistoryRange& range, HistoryStates states) {
  auto reader = TRY(engine.ReadHistory(chat, range, states));
  const auto body = std::make_shared<HistoryBody>(std::move(reader), range, engine.options().prices);
  auto first = TRY(body->Next());
  if (body->ended()) return Reply{.body = *std::move(first)};
  return PiecewiseReply{.first = *std::move(first), .next = [body] { return body->Next(); }};
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
