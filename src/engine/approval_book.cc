#include "engine/approval_book.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace reprise {
namespace {

// How many ids of answered approvals are remembered, so that a late answer is told "already processed" and not
// "unknown".
constexpr std::size_t kRemembered = 10'000;

bool IsWithin(const PendingApproval& pending, const std::optional<Engine::InteractionRef>& within) {
  return !within || (pending.chat_id == within->chat_id && pending.interaction_id == within->interaction_id);
}

}  // namespace

Error AlreadyProcessed() {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = "already_processed",
               .message = "this approval was already processed"};
}

void ApprovalBook::Open(PendingApproval& pending) {
  pending.request.approval_id = "approval_" + RandomHex(16);
  const std::lock_guard lock(mutex_);
  entries_.emplace(pending.request.approval_id, std::make_shared<Entry>(next_number_++, pending));
}

void ApprovalBook::Reopen(const PendingApproval& pending) {
  const std::lock_guard lock(mutex_);
  entries_.emplace(pending.request.approval_id, std::make_shared<Entry>(next_number_++, pending));
}

Result<ApprovalAnswer> ApprovalBook::Wait(const std::string& approval_id, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(approval_id);
  if (found == entries_.end()) return Fail(ErrorCode::kInternal, "this approval was never opened");
  const std::shared_ptr<Entry> entry = found->second;
  entry->answered.wait(lock, stop, [&] { return entry->answer.has_value(); });
  entry->open = false;
  Retire(approval_id);
  if (!entry->answer) return Fail(ErrorCode::kCancelled, "the interaction was cancelled");
  return *std::move(entry->answer);
}

Result<std::shared_ptr<ApprovalBook::Entry>> ApprovalBook::FindOpen(
    std::string_view approval_id, const std::optional<Engine::InteractionRef>& within) const {
  const auto found = entries_.find(std::string(approval_id));
  if (found == entries_.end() || !IsWithin(found->second->pending, within)) {
    return Fail(ErrorCode::kNotFound, "there is no such approval");
  }
  if (!found->second->open) return Fail(AlreadyProcessed());
  return found->second;
}

Result<PendingApproval> ApprovalBook::Find(std::string_view approval_id,
                                           const std::optional<Engine::InteractionRef>& within) const {
  const std::lock_guard lock(mutex_);
  return FindOpen(approval_id, within).map([](const auto& entry) { return entry->pending; });
}

Result<PendingApproval> ApprovalBook::Answer(std::string_view approval_id, ApprovalAnswer answer,
                                             const std::optional<Engine::InteractionRef>& within) {
  std::unique_lock lock(mutex_);
  auto entry = FindOpen(approval_id, within);
  if (!entry) return Fail(entry.error());
  (*entry)->open = false;
  (*entry)->answer = std::move(answer);
  lock.unlock();
  (*entry)->answered.notify_all();
  return (*entry)->pending;
}

void ApprovalBook::Retire(const std::string& approval_id) {
  retired_.push_back(approval_id);
  if (retired_.size() <= kRemembered) return;
  entries_.erase(retired_.front());
  retired_.pop_front();
}

std::vector<PendingApproval> ApprovalBook::Waiting() const {
  std::vector<std::shared_ptr<const Entry>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry->open) open.push_back(entry);
    }
  }
  std::sort(open.begin(), open.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
  std::vector<PendingApproval> waiting;
  for (const auto& entry : open) waiting.push_back(entry->pending);
  return waiting;
}

std::size_t ApprovalBook::waiting_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& each) { return each.second->open; }));
}

}  // namespace reprise
