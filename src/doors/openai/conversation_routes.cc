#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/system.h"
#include "base/try.h"
#include "doors/door.h"
#include "doors/openai/request.h"
#include "doors/openai/request_notes.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise::openai {
namespace {

constexpr std::size_t kUsualItems = 20, kMostItems = 100;
constexpr std::size_t kIdBytes = 16;

Error NoItem(const char* param) {
  return ParamError(ErrorCode::kNotFound, "not_found", "there is no such item", param);
}

Reply ItemList(Json data, bool has_more) {
  Json first = data.empty() ? Json() : data.front()["id"], last = data.empty() ? Json() : data.back()["id"];
  return JsonReply({{"object", "list"},
                    {"data", std::move(data)},
                    {"first_id", std::move(first)},
                    {"last_id", std::move(last)},
                    {"has_more", has_more}});
}

// A page of the interactions' items, as the query asks. `interactions` are the oldest first.
template <typename Items>
Result<Outcome> PageOfItems(const Request& request, std::vector<const Interaction*> interactions, Items items_of) {
  const std::size_t limit = TRY(PageLimit(request, kUsualItems, kMostItems));
  const std::string order = request.Query("order").value_or("desc");
  if (order != "asc" && order != "desc") {
    return Fail(Invalid("invalid_parameter", "\"order\" must be asc or desc", "order"));
  }
  const auto after = request.Query("after");
  const auto behind = after ? InteractionOfItem(*after) : std::nullopt;
  if (after && !behind) return Fail(NoItem("after"));
  if (order == "desc") std::reverse(interactions.begin(), interactions.end());

  bool is_behind = !after, has_more = false;
  Json data = Json::array();
  for (const Interaction* each : interactions) {
    if (!is_behind && each->id != behind->interaction_id) continue;
    if (has_more) break;
    std::vector<Json> items = TRY(items_of(*each));
    if (order == "desc") std::reverse(items.begin(), items.end());
    for (Json& item : items) {
      if (!is_behind) {
        is_behind = item["id"] == *after;
      } else if (data.size() < limit) {
        data.push_back(std::move(item));
      } else {
        has_more = true;
      }
    }
  }
  if (!is_behind) return Fail(NoItem("after"));
  return ItemList(std::move(data), has_more);
}

class ConversationRoutes {
 public:
  ConversationRoutes(const Door& door, std::shared_ptr<RequestNotes> notes) : door_(door), notes_(std::move(notes)) {}

  Result<Outcome> Create(const Request& request) const {
    const auto body = TRY(ParseConversation(request.body, /*needs_items=*/false));
    const ChatId chat = TRY(ChatId::Parse("conv_" + RandomHex(kIdBytes)));
    if (body.turns.empty()) {
      TRY(engine_.CreateChat(chat, {}));
    } else {
      TRY(Add(chat, std::nullopt, body.turns));
    }
    if (body.metadata) notes_->NoteMetadata(chat, *body.metadata);
    return Show(chat);
  }

  Result<Outcome> Get(const Request& request) const { return Show(TRY(ChatInPath(request))); }

  Result<Outcome> Update(const Request& request) const {
    const auto chat = TRY(ChatInPath(request));
    const auto body = TRY(ParseConversation(request.body, /*needs_items=*/false));
    TRY(engine_.GetListEntry(chat));
    if (body.metadata) notes_->NoteMetadata(chat, *body.metadata);
    return Show(chat);
  }

  Result<Outcome> Delete(const Request& request) const {
    const auto chat = TRY(ChatInPath(request));
    TRY(engine_.DeleteChat(chat));
    return JsonReply({{"id", chat.str()}, {"object", "conversation.deleted"}, {"deleted", true}});
  }

  Result<Outcome> ListItems(const Request& request) const {
    const History history = TRY(engine_.GetHistory(TRY(ChatInPath(request)), /*all_branches=*/false));
    return PageOfItems(request, InteractionsOf(history), [&](const Interaction& interaction) {
      return ItemsOf(engine_, interaction, door_.PageAddress(request));
    });
  }

  Result<Outcome> AddItems(const Request& request) const {
    const auto chat = TRY(ChatInPath(request));
    const auto body = TRY(ParseConversation(request.body, /*needs_items=*/true));
    const auto before = TRY(engine_.GetListEntry(chat));
    TRY(Add(chat, before.summary.head, body.turns));
    const History history = TRY(engine_.GetHistory(chat, /*all_branches=*/false));
    Json data = Json::array();
    for (const Interaction* each : InteractionsOf(history)) {
      if (before.summary.head && !(*before.summary.head < each->id)) continue;
      for (Json& item : TRY(ItemsOf(engine_, *each, door_.PageAddress(request)))) data.push_back(std::move(item));
    }
    if (data.empty()) {
      return Fail(Reason::kStale, "the items were added, and the conversation went elsewhere since");
    }
    return ItemList(std::move(data), /*has_more=*/false);
  }

  Result<Outcome> GetItem(const Request& request) const {
    const auto chat = TRY(ChatInPath(request));
    const std::string& id = request.captures.at(1);
    const auto at = InteractionOfItem(id);
    if (!at || at->chat_id != chat) return Fail(NoItem("item_id"));
    const auto interaction = TRY(engine_.GetInteraction(chat, at->interaction_id));
    for (Json& item : TRY(ItemsOf(engine_, interaction, door_.PageAddress(request)))) {
      if (item["id"] == id) return JsonReply(std::move(item));
    }
    return Fail(NoItem("item_id"));
  }

  // The input of one response. Earlier messages are in the conversation.
  Result<Outcome> ListInput(const Request& request) const {
    const auto ref = TRY(ResponseInPath(request));
    const auto interaction = TRY(engine_.GetInteraction(ref.chat_id, ref.interaction_id));
    return PageOfItems(request, {&interaction}, [](const Interaction& each) -> Result<std::vector<Json>> {
      return std::vector<Json>{InputItem(each)};
    });
  }

 private:
  static std::vector<const Interaction*> InteractionsOf(const History& history) {
    std::vector<const Interaction*> interactions;
    for (const HistoryEntry& entry : history.entries) interactions.push_back(&entry.interaction);
    return interactions;
  }

  Result<void> Add(const ChatId& chat, const std::optional<InteractionId>& after,
                   const std::vector<ForeignTurn>& turns) const {
    std::vector<SpokenTurn> spoken;
    for (const ForeignTurn& turn : turns) spoken.push_back({turn.user, turn.answer.value_or("")});
    TRY(engine_.AddTurns(chat, after, std::nullopt, spoken));
    return {};
  }

  Result<Outcome> Show(const ChatId& chat) const {
    const auto entry = TRY(engine_.GetListEntry(chat));
    auto metadata = TRY(ParseJson(notes_->MetadataOf(chat)));
    const auto made = std::chrono::floor<std::chrono::seconds>(entry.summary.created_at).time_since_epoch().count();
    return JsonReply(
        {{"id", chat.str()}, {"object", "conversation"}, {"created_at", made}, {"metadata", std::move(metadata)}});
  }

  const Door door_;
  Engine& engine_ = door_.engine;
  const std::shared_ptr<RequestNotes> notes_;
};

}  // namespace

void AddConversationRoutes(Router& router, const Door& door, std::shared_ptr<RequestNotes> notes) {
  const auto with = [routes = ConversationRoutes(door, std::move(notes))](
                        Result<Outcome> (ConversationRoutes::*handler)(const Request&) const) -> Handler {
    return [routes, handler](const Request& request) { return (routes.*handler)(request); };
  };
  using Routes = ConversationRoutes;
  router.Add("POST", "/v1/conversations", with(&Routes::Create), Lane::kWork, BodyKind::kConversation);
  router.Add("GET", "/v1/conversations/*", with(&Routes::Get));
  router.Add("POST", "/v1/conversations/*", with(&Routes::Update));
  router.Add("DELETE", "/v1/conversations/*", with(&Routes::Delete));
  router.Add("GET", "/v1/conversations/*/items", with(&Routes::ListItems));
  router.Add("POST", "/v1/conversations/*/items", with(&Routes::AddItems), Lane::kWork, BodyKind::kConversation);
  router.Add("GET", "/v1/conversations/*/items/*", with(&Routes::GetItem));
  router.Add("GET", "/v1/responses/*/input_items", with(&Routes::ListInput));
}

}  // namespace reprise::openai
