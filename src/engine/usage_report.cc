#include "engine/usage_report.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/history.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

std::string DayOf(Timestamp time) { return FormatTimestamp(time).substr(0, 10); }

// A copy has its original's turns, which count there.
bool IsCopied(const Interaction& interaction, const ChatSummary& chat) {
  return chat.forked_from && interaction.id.number() <= chat.forked_from->interaction_id.number();
}

// Adds what the chat has used. A chat that is damaged hides no other, but the report is not complete then; one that was
// deleted meanwhile is left out. False: there is no time for more.
bool AddChat(UsageReport& report, const ChatSummary& chat, CheckpointStore& store, Timestamp since,
             Clock::time_point until) {
  auto reader = OpenHistory(store, chat.id, {.all_branches = true}, HistoryStates::kNone, std::nullopt);
  if (!reader) {
    if (!IsNotFound(reader.error())) report.complete = false;
    return true;
  }
  UsageReport::OfChat of_chat{.chat = chat.id, .title = chat.title};
  bool has_time = true;
  while (has_time) {
    const auto next = (*reader)->Next();
    if (!next && !IsNotFound(next.error())) report.complete = false;
    if (!next || !*next) break;
    has_time = Clock::now() < until;
    const auto json = ParseJson((*next)->json);
    const auto interaction = json ? InteractionFromJson(*json) : Fail(json.error());
    if (!interaction) report.complete = false;
    if (!interaction || interaction->created_at < since || interaction->model.empty()) continue;
    if (interaction->imported || IsCopied(*interaction, chat)) continue;
    report.days[DayOf(interaction->created_at)][interaction->model] += interaction->usage;
    of_chat.models[interaction->model] += interaction->usage;
  }
  if (!(*reader)->damaged().empty() || !has_time) report.complete = false;
  if (!of_chat.models.empty()) report.chats.push_back(std::move(of_chat));
  return has_time;
}

}  // namespace

Result<UsageReport> UsageSince(EngineServices& services, Timestamp since) {
  constexpr std::chrono::seconds kLongest{10};
  const auto until = Clock::now() + kLongest;
  UsageReport report;
  const auto unreadable = services.parts.store.ListUnreadableChats();
  report.complete = unreadable && unreadable->empty();
  for (const ChatSummary& chat : TRY(services.parts.store.ListChats())) {
    if (chat.updated_at < since) continue;
    if (!AddChat(report, chat, services.parts.store, since, until)) break;
  }
  return report;
}

}  // namespace reprise
