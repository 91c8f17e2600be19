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

// What people are asked. Each kind names the request, the answer to it, and what errors call it.
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

// The error of an answer that comes too late.
template <typename Kind>
Error AlreadyProcessed();
// The error of an answer to something that was never asked.
template <typename Kind>
Error NeverAsked();

// All requests of one kind that wait for a person, and the ids of those that do not any more. Each is answered at most
// once, by whoever is first. Nobody waits on a thread: who asked is called when there is an answer. Thread-safe; its
// lock is a leaf. Must outlive everybody who awaits an answer.
template <typename Kind>
class Requests {
 public:
  using Pending = typename Kind::Pending;
  using Answer = typename Kind::Answer;

  // One request: what is done with it when it was found needs no second look-up.
  class Entry;
  using Found = std::shared_ptr<Entry>;

  // `delay` tells of requests that expire. The time of day is asked for when a request is opened only: it may be set
  // while one waits.
  // `changes`, if there are any, learn what opens and what does not wait any more.
  explicit Requests(Delay delay, std::function<Timestamp()> now = Now, ChatChanges* changes = nullptr)
      : delay_(std::move(delay)), now_(std::move(now)), changes_(changes) {}

  // Gives a request its id, fresh and unguessable: the first half of Open; the second is Reopen.
  static void Name(Pending& pending);
  // Registers a request under a fresh unguessable id, which it writes into `pending`. From now on it can be answered.
  void Open(Pending& pending);
  // Puts back one that another process opened, under its id.
  Found Reopen(const Pending& pending);
  // Calls `done` once, when one of these is answered or has expired. When `stop` is requested first all of them are
  // void: kCancelled. `done` must be quick; it is called within this call, or by whoever answers, stops or tells the
  // time.
  using Answered = Result<std::pair<std::string, Answer>>;
  void Await(const std::vector<std::string>& ids, std::stop_token stop, std::function<void(Answered)> done);

  // What was asked; there as long as `entry` is.
  static const Pending& PendingOf(const Entry& entry);
  // One that waits. Errors as Engine::AnswerApproval.
  Result<Found> Find(std::string_view id, const std::optional<InteractionRef>& within) const;
  // Answers it. kInvalidArgument if another answer came first, or (reason "expired") it is too late.
  Result<void> Give(const Found& request, Answer answer);
  // The same in two steps, for an answer that needs something to be done before it counts: nobody else can answer what
  // is claimed. Settled without an answer it waits again.
  Result<void> Claim(const Found& request);
  Result<void> Settle(const Found& request, std::optional<Answer> answer);

  std::vector<Pending> Waiting() const;  // oldest first
  std::size_t waiting_count() const;
  std::size_t waiting_in(const ChatId& chat) const;

 private:
  struct Waiter;
  using Deadline = std::chrono::steady_clock::time_point;
  void ExpireLater(const std::shared_ptr<Waiter>& waiter, Deadline deadline);
  // After its time has come, or with a stop.
  void Wake(const std::shared_ptr<Waiter>& waiter, bool stopped);
  Result<void> CheckOpen(const Entry& entry) const REQUIRES(mutex_);
  void Retire(Entry& entry) REQUIRES(mutex_);
  // To be called without the lock, to tell the waiter; null: there is nothing to tell.
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
