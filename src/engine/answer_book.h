#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reprise/approval.h"
#include "reprise/engine.h"
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
};
struct InputKind {
  using Pending = PendingInput;
  using Answer = InputAnswer;
  static constexpr std::string_view kWord = "question", kIdPrefix = "request_";
  static constexpr auto kId = &event::InputRequired::request_id;
  static std::optional<Timestamp> ExpiresAt(const Pending&) { return std::nullopt; }
  static Answer Expired() { return {}; }
};

// The error of an answer that comes too late.
template <typename Kind>
Error AlreadyProcessed();
// The error of an answer to something that was never asked.
template <typename Kind>
Error NeverAsked();

// All questions of one kind that wait for a person, and the ids of those that do not any more. Each is answered at most
// once, by whoever is first: the decision is taken and looked at under one lock. Thread-safe; its lock is a leaf.
template <typename Kind>
class AnswerBook {
 public:
  using Pending = typename Kind::Pending;
  using Answer = typename Kind::Answer;

  // The time of day is asked for when a question is opened only: it may be set while one waits.
  explicit AnswerBook(std::function<Timestamp()> now = Now) : now_(std::move(now)) {}

  // Registers a request under a fresh unguessable id, which it writes into `pending`. From now on it can be answered.
  void Open(Pending& pending);

  // Puts back one that another process opened, under its id.
  void Reopen(const Pending& pending);

  // Blocks until somebody answers. When `stop` is requested first the question is void: kCancelled.
  Result<Answer> Wait(const std::string& id, std::stop_token stop);
  // The same for several: until one of them is answered, or has expired. When `stop` is requested first all are void.
  Result<std::pair<std::string, Answer>> WaitAny(std::span<const std::string> ids, const std::stop_token& stop);

  // Looks at one that waits. Errors as Engine::AnswerApproval.
  Result<Pending> Find(std::string_view id, const std::optional<Engine::InteractionRef>& within) const;
  // Answers it. The same errors; kInvalidArgument if another answer came first, or (reason "expired") it is too late.
  Result<Pending> Give(std::string_view id, Answer answer, const std::optional<Engine::InteractionRef>& within);
  // The same in two steps, for an answer that needs something to be done before it counts: nobody else can answer what
  // is claimed. Without an answer it waits again.
  Result<Pending> Claim(std::string_view id, const std::optional<Engine::InteractionRef>& within);
  Result<void> Settle(std::string_view id, std::optional<Answer> answer);

  std::vector<Pending> Waiting() const;  // oldest first
  std::size_t waiting_count() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Entry {
    Entry(std::uint64_t count, Pending request, std::optional<Deadline> until)
        : number(count), pending(std::move(request)), deadline(until) {}
    bool has_expired() const { return deadline && std::chrono::steady_clock::now() >= *deadline; }
    const std::uint64_t number;  // of creation
    const Pending pending;
    const std::optional<Deadline> deadline;
    enum class State { kOpen, kClaimed, kOver };
    State state = State::kOpen;
    std::optional<Answer> answer;
    std::shared_ptr<std::condition_variable_any> waiter;  // null: nobody waits yet
  };
  std::optional<Deadline> DeadlineOf(const Pending& pending) const;
  // With mutex_ held.
  Result<std::shared_ptr<Entry>> FindOpen(std::string_view id,
                                          const std::optional<Engine::InteractionRef>& within) const;
  void Retire(const std::string& id);

  const std::function<Timestamp()> now_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;  // guarded by mutex_
  std::deque<std::string> retired_;                                  // guarded by mutex_; oldest first
  std::uint64_t next_number_ = 0;                                    // guarded by mutex_
};

using ApprovalBook = AnswerBook<ApprovalKind>;
using InputBook = AnswerBook<InputKind>;

}  // namespace reprise
