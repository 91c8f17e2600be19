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
void AnswerBook<Kind>::Open(Pending& pending) {
  pending.request.*Kind::kId = std::string(Kind::kIdPrefix) + RandomHex(16);
  const std::lock_guard lock(mutex_);
  entries_.emplace(pending.request.*Kind::kId, std::make_shared<Entry>(next_number_++, pending));
}

template <typename Kind>
void AnswerBook<Kind>::Reopen(const Pending& pending) {
  const std::lock_guard lock(mutex_);
  entries_.emplace(pending.request.*Kind::kId, std::make_shared<Entry>(next_number_++, pending));
}

template <typename Kind>
auto AnswerBook<Kind>::Wait(const std::string& id, std::stop_token stop) -> Result<Answer> {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return Fail(ErrorCode::kInternal, "this was never opened");
  const std::shared_ptr<Entry> entry = found->second;
  entry->answered.wait(lock, stop, [&] { return entry->answer.has_value(); });
  entry->open = false;
  Retire(id);
  if (!entry->answer) return Fail(ErrorCode::kCancelled, "the interaction was cancelled");
  return *std::move(entry->answer);
}

template <typename Kind>
Result<std::shared_ptr<typename AnswerBook<Kind>::Entry>> AnswerBook<Kind>::FindOpen(
    std::string_view id, const std::optional<Engine::InteractionRef>& within) const {
  const auto found = entries_.find(std::string(id));
  if (found == entries_.end() || !IsWithin(found->second->pending, within)) {
    return Fail(NeverAsked<Kind>());
  }
  if (!found->second->open) return Fail(AlreadyProcessed<Kind>());
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
  std::unique_lock lock(mutex_);
  auto entry = FindOpen(id, within);
  if (!entry) return Fail(entry.error());
  (*entry)->open = false;
  (*entry)->answer = std::move(answer);
  lock.unlock();
  (*entry)->answered.notify_all();
  return (*entry)->pending;
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
      if (entry->open) open.push_back(entry);
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
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& each) { return each.second->open; }));
}

template class AnswerBook<ApprovalKind>;
template class AnswerBook<InputKind>;
template Error AlreadyProcessed<ApprovalKind>();
template Error AlreadyProcessed<InputKind>();
template Error NeverAsked<ApprovalKind>();
template Error NeverAsked<InputKind>();

}  // namespace reprise
