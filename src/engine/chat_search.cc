// The search through all chats.
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "domain/codec.h"
#include "engine/chats.h"
#include "engine/history.h"

namespace reprise {

void Chats::SearchIn(ChatSummary chat, const TextSearch& search, SteadyClock::time_point until, SearchResult& result) {
  const auto run = busy_.RunOf(chat.id);
  if (run && !chat.head) FillFromBegun(chat, run->Snapshot());
  // A chat that is damaged or deleted meanwhile hides no other. Runs of other processes are not searched.
  auto reader = OpenHistory(services_.parts.store, chat.id, {.all_branches = true}, HistoryStates::kNone,
                            run ? std::optional(run->Snapshot()) : std::nullopt);
  if (!reader) return;
  TextPieces heard;
  bool is_whole = !run;
  std::vector<SearchMatch> found;
  while (SteadyClock::now() < until) {
    const auto next = (*reader)->Next();
    if (next && !*next && is_whole && (*reader)->damaged().empty()) searched_.Learn(chat, std::move(heard));
    if (!next || !*next) break;
    const auto json = ParseJson((*next)->json);
    const auto interaction = json ? InteractionFromJson(*json) : Fail(json.error());
    is_whole = is_whole && interaction;
    if (!interaction) continue;
    for (TextMatch& match : search.In(*interaction, &heard)) {
      found.push_back({.chat_id = chat.id,
                       .title = chat.title,
                       .interaction_id = interaction->id,
                       .superseded = (*next)->superseded,
                       .where = std::string(match.where),
                       .snippet = std::move(match.snippet)});
    }
  }
  result.matches.insert(result.matches.end(), std::make_move_iterator(found.rbegin()),
                        std::make_move_iterator(found.rend()));
}

Result<SearchResult> Chats::Search(const std::string& text, const std::optional<ChatId>& chat, std::size_t limit) {
  constexpr std::chrono::seconds kLongest{5};
  constexpr std::size_t kAtOnce = 500;  // most searches find enough in the newest chats
  if (text.empty()) return Fail(ErrorCode::kInvalidArgument, "there is nothing to look for");
  const TextSearch search(text, {});
  SteadyClock::time_point until;
  SearchResult result;
  ChatPage page;
  std::optional<ChatPlace> place;
  std::set<ChatId> running;
  for (const auto& run : busy_.Runs()) running.insert(run->chat_id());
  const auto may_have = [&, sought = TextPieces::PiecesOf(text)](const ChatSummary& each) {
    return searched_.MayHave(each, sought) || running.contains(each.id);
  };
  if (chat) page.chats.push_back(TRY(ListEntryOf(*chat)).summary);
  do {
    if (!chat) page = TRY(services_.parts.store.ListPage(place, kAtOnce, may_have));
    if (!place) until = SteadyClock::now() + kLongest;  // the first list may have to read all chats
    if (!page.chats.empty()) place = ChatPlace::Of(page.chats.back());
    for (ChatSummary& summary : page.chats) {
      SearchIn(std::move(summary), search, until, result);
      result.truncated = result.matches.size() > limit || SteadyClock::now() >= until;
      if (result.truncated) break;
    }
  } while (page.more && !result.truncated);
  if (result.matches.size() > limit) result.matches.resize(limit, result.matches.front());
  return result;
}

}  // namespace reprise
