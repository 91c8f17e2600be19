#include "engine/answer_book.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace reprise {
namespace {

// How many ids of answered questions are remembered, so that a late answer is told "already processed" and not
// "unknown".
constexpr std::size_t kRemembered = 10'000;

template <typename Pending>
bool IsWithin(const Pending& pending, const std::optional<Engine::InteractionRef>& within) {
  return !within || (pending.chat_id == within->chat_id && pending.interaction_id == within->interaction_id);
}

}  // namespace

template <typename Kind>
Error AlreadyProcessed() {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = "already_processed",
               .message = "this " + std::string(Kind::kWord) + " was already processed"};
}

template <typename Kind>
Error NeverAsked() {
  return MakeError(ErrorCode::kNotFound, "there is no such " + std::string(Kind::kWord));
}

template <typename Kind>
auto AnswerBook<Kind>::DeadlineOf(const Pending& pending) const -> std::optional<Deadline> {
  const auto expires_at = Kind::ExpiresAt(pending);
  if (!expires_at) return std::nullopt;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(*expires_at - now_());
}

template <typename Kind>
void AnswerBook<Kind>::Open(Pending& pending) {
  pending.request.*Kind::kId = std::string(Kind::kIdPrefix) + RandomHex(16);
  const std::lock_guard lock(mutex_);
  entries_.emplace(pending.request.*Kind::kId, std::make_shared<Entry>(next_number_++, pending, DeadlineOf(pending)));
}

template <typename Kind>
void AnswerBook<Kind>::Reopen(const Pending& pending) {
  const std::lock_guard lock(mutex_);
  entries_.emplace(pending.request.*Kind::kId, std::make_shared<Entry>(next_number_++, pending, DeadlineOf(pending)));
}

template <typename Kind>
auto AnswerBook<Kind>::Wait(const std::string& id, std::stop_token stop) -> Result<Answer> {
  auto answered = WaitAny(std::span(&id, 1), stop);
  if (!answered) return Fail(std::move(answered.error()));
  return std::move(answered->second);
}

template <typename Kind>
auto AnswerBook<Kind>::WaitAny(std::span<const std::string> ids, const std::stop_token& stop)
    -> Result<std::pair<std::string, Answer>> {
  std::unique_lock lock(mutex_);
  const auto waiter = std::make_shared<std::condition_variable_any>();
  std::vector<std::shared_ptr<Entry>> asked;
  std::optional<Deadline> deadline;
  for (const std::string& id : ids) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return Fail(ErrorCode::kInternal, "this was never opened");
    found->second->waiter = waiter;
    asked.push_back(found->second);
    const auto& until = found->second->deadline;
    if (until && (!deadline || *until < *deadline)) deadline = until;
  }
  const auto answered = [&] {
    return std::find_if(asked.begin(), asked.end(), [](const auto& entry) { return entry->answer.has_value(); });
  };
  const auto is_answered = [&] { return answered() != asked.end(); };
  deadline ? waiter->wait_until(lock, stop, *deadline, is_answered) : waiter->wait(lock, stop, is_answered);
  auto first = answered();
  if (first == asked.end() && !stop.stop_requested()) {
    first = std::find_if(asked.begin(), asked.end(), [](const auto& entry) { return entry->has_expired(); });
    if (first != asked.end()) (*first)->answer = Kind::Expired();
  }
  const auto end = [&](Entry& entry) {
    entry.state = Entry::State::kOver;
    Retire(entry.pending.request.*Kind::kId);
  };
  if (first == asked.end()) {
    for (const auto& entry : asked) end(*entry);
    return Fail(ErrorCode::kCancelled, "the interaction was cancelled");
  }
  end(**first);
  return std::pair((*first)->pending.request.*Kind::kId, *std::move((*first)->answer));
}

template <typename Kind>
Result<std::shared_ptr<typename AnswerBook<Kind>::Entry>> AnswerBook<Kind>::FindOpen(
    std::string_view id, const std::optional<Engine::InteractionRef>& within) const {
  const auto found = entries_.find(std::string(id));
  if (found == entries_.end() || !IsWithin(found->second->pending, within)) {
    return Fail(NeverAsked<Kind>());
  }
  if (found->second->state != Entry::State::kOpen) return Fail(AlreadyProcessed<Kind>());
  if (found->second->has_expired()) {
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "expired",
                      .message = "this " + std::string(Kind::kWord) + " has expired"});
  }
  return found->second;
}

template <typename Kind>
auto AnswerBook<Kind>::Find(std::string_view id, const std::optional<Engine::InteractionRef>& within) const
    -> Result<Pending> {
  const std::lock_guard lock(mutex_);
  return FindOpen(id, within).map([](const auto& entry) { return entry->pending; });
}

template <typename Kind>
auto AnswerBook<Kind>::Give(std::string_view id, Answer answer, const std::optional<Engine::InteractionRef>& within)
    -> Result<Pending> {
  auto claimed = Claim(id, within);
  if (!claimed) return claimed;
  return Settle(id, std::move(answer)).map([&] { return *std::move(claimed); });
}

template <typename Kind>
auto AnswerBook<Kind>::Claim(std::string_view id, const std::optional<Engine::InteractionRef>& within)
    -> Result<Pending> {
  const std::lock_guard lock(mutex_);
  const auto entry = FindOpen(id, within);
  if (!entry) return Fail(entry.error());
  (*entry)->state = Entry::State::kClaimed;
  return (*entry)->pending;
}

template <typename Kind>
Result<void> AnswerBook<Kind>::Settle(std::string_view id, std::optional<Answer> answer) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(std::string(id));
  // Its run may have been stopped meanwhile.
  if (found == entries_.end() || found->second->state != Entry::State::kClaimed) return Fail(AlreadyProcessed<Kind>());
  Entry& entry = *found->second;
  entry.state = answer ? Entry::State::kOver : Entry::State::kOpen;
  entry.answer = std::move(answer);
  const auto waiter = entry.waiter;
  lock.unlock();
  if (waiter) waiter->notify_all();
  return {};
}

template <typename Kind>
void AnswerBook<Kind>::Retire(const std::string& id) {
  retired_.push_back(id);
  if (retired_.size() <= kRemembered) return;
  entries_.erase(retired_.front());
  retired_.pop_front();
}

template <typename Kind>
auto AnswerBook<Kind>::Waiting() const -> std::vector<Pending> {
  std::vector<std::shared_ptr<const Entry>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry->state == Entry::State::kOpen && !entry->has_expired()) open.push_back(entry);
    }
  }
  std::sort(open.begin(), open.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
  std::vector<Pending> waiting;
  for (const auto& entry : open) waiting.push_back(entry->pending);
  return waiting;
}

template <typename Kind>
std::size_t AnswerBook<Kind>::waiting_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& each) {
    return each.second->state == Entry::State::kOpen && !each.second->has_expired();
  }));
}

template class AnswerBook<ApprovalKind>;
template class AnswerBook<InputKind>;
template Error AlreadyProcessed<ApprovalKind>();
template Error AlreadyProcessed<InputKind>();
template Error NeverAsked<ApprovalKind>();
template Error NeverAsked<InputKind>();

}  // namespace reprise
