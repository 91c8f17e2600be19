#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reprise/approval.h"
#include "reprise/engine.h"
#include "reprise/result.h"

namespace reprise {

// The error of an answer that comes too late.
Error AlreadyProcessed();

// All approvals that wait for a person, and the ids of those that do not any more. Each is answered at most once, by
// whoever is first: the decision is taken and looked at under one lock. Thread-safe; its lock is a leaf.
class ApprovalBook {
 public:
  // Registers a request under a fresh unguessable id, which it writes into `pending`. From now on it can be answered.
  void Open(PendingApproval& pending);

  // Puts back one that another process opened, under its id.
  void Reopen(const PendingApproval& pending);

  // Blocks until somebody answers. When `stop` is requested first the approval is void: kCancelled.
  Result<ApprovalAnswer> Wait(const std::string& approval_id, std::stop_token stop);

  // Looks at a waiting approval. Errors as Engine::AnswerApproval.
  Result<PendingApproval> Find(std::string_view approval_id, const std::optional<Engine::InteractionRef>& within) const;
  // Answers it. The same errors; kInvalidArgument if another answer came first.
  Result<PendingApproval> Answer(std::string_view approval_id, ApprovalAnswer answer,
                                 const std::optional<Engine::InteractionRef>& within);

  std::vector<PendingApproval> Waiting() const;  // oldest first
  std::size_t waiting_count() const;

 private:
  struct Entry {
    Entry(std::uint64_t count, PendingApproval request) : number(count), pending(std::move(request)) {}
    const std::uint64_t number;  // of creation
    const PendingApproval pending;
    std::optional<ApprovalAnswer> answer;
    bool open = true;
    std::condition_variable_any answered;
  };
  // With mutex_ held.
  Result<std::shared_ptr<Entry>> FindOpen(std::string_view approval_id,
                                          const std::optional<Engine::InteractionRef>& within) const;
  void Retire(const std::string& approval_id);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;  // guarded by mutex_
  std::deque<std::string> retired_;                                  // guarded by mutex_; oldest first
  std::uint64_t next_number_ = 0;                                    // guarded by mutex_
};

}  // namespace reprise
