#include "engine/repeated_requests.h"

#include <algorithm>
#include <variant>

#include "base/try.h"
#include "engine/run_journal.h"
#include "reprise/event.h"

namespace reprise {
namespace {

constexpr std::size_t kMostChats = 1000;  // the number of chats with remembered branches

Error Reused() {
  return Refused(Reason::kIdempotencyKeyReused,
                 "another request of this chat had this Idempotency-Key; take a new one");
}

Error Waits() {
  return Refused(Reason::kRequestWaits, "this request waits in the chat's queue; it can be followed when it has begun");
}

bool WasLeft(const Interaction& interaction) {
  return std::ranges::any_of(interaction.events, [](const AgentEvent& event) {
    const auto* cancelled = std::get_if<event::Cancelled>(&event.payload);
    return cancelled && (cancelled->reason == "client_disconnected" || cancelled->reason == "server_stopping");
  });
}

// Unlike a damaged interaction, which ends the search for good.
bool CanBeReadLater(const Error& error) { return error.code == ErrorCode::kUnavailable; }

}  // namespace

Result<std::optional<InteractionId>> RepeatedRequests::Find(const ChatId& chat, const ClientRequest& request) {
  if (request.is_unnamed()) return FindUnrepeatable(chat, request);
  // In the order in which a request moves on, so that none is missed between two looks.
  auto found = TRY(FindRunning(chat, request.key));
  if (!found) {
    const auto waiting = TRY(services_.queues.RequestOf(chat, request.key));
    if (waiting) return Fail(*waiting == request ? Waits() : Reused());
    found = TRY(FindRunning(chat, request.key));  // it may have left the queue since the look above
  }
  if (!found) found = TRY(FindStored(chat, request.key));
  if (!found) return std::nullopt;
  if (found->first != request) return Fail(Reused());
  return found->second;
}

Result<RepeatedRequests::Found> RepeatedRequests::FindRunning(const ChatId& chat, const std::string& key) {
  const auto as_found = [&](const std::optional<ClientRequest>& request, InteractionId id) -> Found {
    return request && request->key == key ? Found({*request, id}) : std::nullopt;
  };
  if (const auto run = busy_.RunOf(chat)) return as_found(run->request(), run->id());
  const auto elsewhere = TRY(services_.parts.runs.HeldElsewhere(chat));
  if (!elsewhere) return std::nullopt;
  const auto held = services_.parts.runs.ReadHeld({chat, *elsewhere});
  if (!held && IsNotFound(held.error())) return std::nullopt;  // it has ended meanwhile, and is stored
  if (!held) return Fail(held.error());
  const auto run = TRY(ReadRun({chat, *elsewhere}, held->content));
  return run ? as_found(run->record.request, *elsewhere) : std::nullopt;
}

Result<RepeatedRequests::Found> RepeatedRequests::FindStored(const ChatId& chat, const std::string& key) {
  const auto summary = services_.parts.store.LoadSummary(chat);
  if (!summary && IsNotFound(summary.error())) return std::nullopt;
  if (!summary) return Fail(summary.error());
  if (!summary->head) return std::nullopt;
  std::optional<Seen> before;
  {
    const MutexLock lock(mutex_);
    if (const auto known = seen_.find(chat); known != seen_.end()) before = known->second;
  }
  Seen seen{.head = *summary->head};
  std::optional<InteractionId> next = summary->head;
  const Timestamp oldest = Now() - kLife;
  for (std::size_t looked = 0; next && looked < kLooksBack && !(before && *next == before->head); ++looked) {
    const auto interaction = interactions_.FindFinished(chat, *next);
    if (!interaction && CanBeReadLater(interaction.error())) return Fail(interaction.error());
    if (!interaction || interaction->created_at < oldest) break;
    if (interaction->record && interaction->record->request) {
      const ClientRequest& request = *interaction->record->request;
      seen.by_key.try_emplace(request.key, request, interaction->id);
    }
    next = interaction->parent_id;
  }
  if (before && next == before->head) seen.by_key.merge(before->by_key);
  const auto found = seen.by_key.find(key);
  Found result = found == seen.by_key.end() ? std::nullopt : Found(found->second);
  Remember(chat, std::move(seen));
  return result;
}

Result<std::optional<InteractionId>> RepeatedRequests::FindUnrepeatable(const ChatId& chat,
                                                                        const ClientRequest& request) {
  if (const auto running = TRY(FindRunning(chat, request.key))) {
    return request.is_unnamed_whole() ? std::optional(running->second) : std::nullopt;
  }
  const auto summary = services_.parts.store.LoadSummary(chat);
  if (!summary && !IsNotFound(summary.error())) return Fail(summary.error());
  const auto head = summary ? summary->head : std::nullopt;
  const auto workspace = TRY(services_.WorkspaceAt(summary ? summary->workspace : std::string()));
  const auto tools = workspace->tools.Current();
  const auto decide = [&](const Interaction& found) {
    const bool is_over = found.status == InteractionStatus::kFailed || (request.is_unnamed_whole() && WasLeft(found));
    return is_over && HasSideEffects(found, *tools) ? std::optional(found.id) : std::nullopt;
  };
  const auto is_its = [&](const Interaction& each) { return each.record && each.record->request == request; };
  for (const Interaction& rescued : interactions_.RescuedAfter(chat, head)) {
    if (is_its(rescued)) return decide(rescued);
  }
  const Timestamp oldest = Now() - kUnrepeatable;
  auto next = head;
  for (std::size_t looked = 0; next && looked < kLooksBack; ++looked) {
    const auto found = interactions_.FindFinished(chat, *next);
    if (!found && CanBeReadLater(found.error())) return Fail(found.error());
    if (!found || found->completed_at.value_or(found->created_at) < oldest) break;
    if (is_its(*found)) return decide(*found);
    // A client that has since made another request and got its answer makes a new one.
    if (found->status == InteractionStatus::kCompleted && found->record && found->record->request) break;
    next = found->parent_id;
  }
  return std::nullopt;
}

void RepeatedRequests::Remember(const ChatId& chat, Seen seen) {
  // Ids rise with time, so this drops the oldest.
  while (seen.by_key.size() > kLooksBack) {
    const auto oldest = std::ranges::min_element(
        seen.by_key, [](const auto& a, const auto& b) { return a.second.second < b.second.second; });
    seen.by_key.erase(oldest);
  }
  const MutexLock lock(mutex_);
  if (seen_.size() >= kMostChats && !seen_.contains(chat)) seen_.clear();
  seen_.insert_or_assign(chat, std::move(seen));
}

}  // namespace reprise
