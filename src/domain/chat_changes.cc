#include "reprise/chat_changes.h"

#include <utility>

namespace reprise {
namespace {

constexpr std::size_t kKept = 4096;

}  // namespace

std::string_view ToString(ChatChange::Kind kind) {
  switch (kind) {
    case ChatChange::Kind::kChatCreated:
      return "chat_created";
    case ChatChange::Kind::kChatRenamed:
      return "chat_renamed";
    case ChatChange::Kind::kChatDeleted:
      return "chat_deleted";
    case ChatChange::Kind::kHeadMoved:
      return "head_moved";
    case ChatChange::Kind::kInteractionStarted:
      return "interaction_started";
    case ChatChange::Kind::kInteractionEnded:
      return "interaction_ended";
    case ChatChange::Kind::kApprovalOpened:
      return "approval_opened";
    case ChatChange::Kind::kApprovalClosed:
      return "approval_closed";
    case ChatChange::Kind::kInputOpened:
      return "input_opened";
    case ChatChange::Kind::kInputClosed:
      return "input_closed";
    case ChatChange::Kind::kQueueChanged:
      return "queue_changed";
    case ChatChange::Kind::kJobsChanged:
      return "jobs_changed";
  }
  return "head_moved";
}

void ChatChanges::Add(ChatChange::Kind kind, const ChatId& chat, std::optional<InteractionId> interaction,
                      std::string request_id) {
  ChatChange change{.kind = kind, .chat_id = chat, .interaction_id = interaction, .request_id = std::move(request_id)};
  if (on_added_) on_added_(change);
  AddFromOthers(std::move(change));
}

void ChatChanges::AddFromOthers(ChatChange change) {
  bool wake;
  {
    const std::lock_guard lock(mutex_);
    change.number = ++last_;
    changes_.push_back(std::move(change));
    if (changes_.size() > kKept) changes_.pop_front();
    wake = waiting_ > 0;
  }
  if (wake) added_.notify_all();
}

void ChatChanges::Forget() {
  {
    const std::lock_guard lock(mutex_);
    ++last_;
    changes_.clear();
  }
  added_.notify_all();
}

std::uint64_t ChatChanges::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::optional<std::vector<ChatChange>> ChatChanges::After(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t forgotten = last_ - changes_.size();
  if (number > last_ || number < forgotten) return std::nullopt;
  return std::vector<ChatChange>(changes_.begin() + static_cast<std::ptrdiff_t>(number - forgotten), changes_.end());
}

bool ChatChanges::AwaitAfter(std::uint64_t number, std::uint64_t interrupts) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  added_.wait(lock, [&] { return last_ > number || interrupts_ != interrupts; });
  --waiting_;
  return last_ > number;
}

std::uint64_t ChatChanges::interrupts() const {
  const std::lock_guard lock(mutex_);
  return interrupts_;
}

void ChatChanges::Interrupt() {
  {
    const std::lock_guard lock(mutex_);
    ++interrupts_;
  }
  added_.notify_all();
}

}  // namespace reprise
