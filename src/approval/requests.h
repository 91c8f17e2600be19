#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/async.h"
#include "base/mutex.h"
#include "reprise/approval.h"
#include "reprise/chat_changes.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// The kinds of requests to people. Each names its request, its answer and its word in error messages.
struct ApprovalKind {
  using Pending = PendingApproval;
  using Answer = ApprovalAnswer;
  static constexpr std::string_view kWord = "approval", kIdPrefix = "approval_";
  static constexpr auto kId = &event::ApprovalRequired::approval_id;
  static std::optional<Timestamp> ExpiresAt(const Pending& pending) { return pending.request.expires_at; }
  static Answer Expired() { return {.approved = false, .expired = true}; }
  static constexpr auto kOpened = ChatChange::Kind::kApprovalOpened, kClosed = ChatChange::Kind::kApprovalClosed;
};
struct InputKind {
  using Pending = PendingInput;
  using Answer = InputAnswer;
  static constexpr std::string_view kWord = "question", kIdPrefix = "request_";
  static constexpr auto kId = &event::InputRequired::request_id;
  static std::optional<Timestamp> ExpiresAt(const Pending&) { return std::nullopt; }
  static Answer Expired() { return {}; }
  static constexpr auto kOpened = ChatChange::Kind::kInputOpened, kClosed = ChatChange::Kind::kInputClosed;
};

// The error for a late answer.
template <typename Kind>
Error AlreadyProcessed();
// The error for an answer to an unknown request.
template <typename Kind>
Error NeverAsked();

// All requests of one kind that wait for a person, and the ids of past ones. The first answer to a request wins. No
// thread blocks: the asking code is called back. Thread-safe; its lock is a leaf. Must outlive all callers of Await.
template <typename Kind>
class Requests {
 public:
  using Pending = typename Kind::Pending;
  using Answer = typename Kind::Answer;

  // Handle of a request, which saves further look-ups.
  class Entry;
  using Found = std::shared_ptr<Entry>;

  // `delay` wakes requests that expire. `now` is called only when a request is opened, because the clock may be set
  // while one waits. `changes`, if not null, is told of requests that open and close.
  explicit Requests(Delay delay, std::function<Timestamp()> now = Now, ChatChanges* changes = nullptr)
      : delay_(std::move(delay)), now_(std::move(now)), changes_(changes) {}

  // Gives a request a fresh, unguessable id.
  static void Name(Pending& pending);
  // Registers a request under its id, which another process may have given it. It can be answered at once.
  Found Reopen(const Pending& pending);
  // Calls `done` once, when one of these is answered or expires. If `stop` is requested first, all of them become void:
  // kCancelled. `done` must be quick; it runs within this call or on the thread that answers, stops or runs the delay.
  using Answered = Result<std::pair<std::string, Answer>>;
  void Await(const std::vector<std::string>& ids, std::stop_token stop, std::function<void(Answered)> done);

  // The request itself; lives as long as `entry`.
  static const Pending& PendingOf(const Entry& entry);
  // Finds a waiting request. Errors as in Engine::AnswerApproval.
  Result<Found> Find(std::string_view id, const std::optional<InteractionRef>& within) const;
  // Answers it. kInvalidArgument if another answer came first, or (reason "expired") it is too late.
  Result<void> Give(const Found& request, Answer answer);
  // The same in two steps, for an answer that needs work before it counts. A claimed request takes no other answer.
  // Settling it without an answer lets it wait again.
  Result<void> Claim(const Found& request);
  Result<void> Settle(const Found& request, std::optional<Answer> answer);

  std::vector<Pending> Waiting() const;  // oldest first
  std::size_t waiting_count() const;
  std::size_t waiting_in(const ChatId& chat) const;

 private:
  struct Waiter;
  using Deadline = std::chrono::steady_clock::time_point;
  void ExpireLater(const std::shared_ptr<Waiter>& waiter, Deadline deadline);
  // Called when the time has come or a stop was requested.
  void Wake(const std::shared_ptr<Waiter>& waiter, bool stopped);
  Result<void> CheckOpen(const Entry& entry) const REQUIRES(mutex_);
  void Retire(Entry& entry) REQUIRES(mutex_);
  // Returns the function that tells the waiter, to be called without the lock; null if there is nothing to tell.
  std::function<void()> Tell(const std::shared_ptr<Waiter>& waiter, bool stopped) REQUIRES(mutex_);

  void TellChange(ChatChange::Kind kind, const Pending& pending) const;

  const Delay delay_;
  const std::function<Timestamp()> now_;
  ChatChanges* const changes_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Found> entries_ GUARDED_BY(mutex_);
  std::deque<std::string> retired_ GUARDED_BY(mutex_);  // oldest first
  std::uint64_t next_number_ GUARDED_BY(mutex_) = 0;
};

using ApprovalRequests = Requests<ApprovalKind>;
using InputRequests = Requests<InputKind>;

}  // namespace reprise
