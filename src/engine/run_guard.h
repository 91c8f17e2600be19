#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/agent.h"
#include "base/mutex.h"
#include "base/text.h"
#include "reprise/accounting.h"
#include "reprise/audit_log.h"
#include "reprise/engine.h"
#include "reprise/guardrails.h"
#include "reprise/hooks.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/result.h"

namespace re2 {
class RE2;
}

namespace reprise {

// Limits each chat's tool calls in any minute. Thread-safe; nothing survives the process.
class CallRate {
 public:
  using Clock = std::chrono::steady_clock;

  // Counts a call made now; or, if the limit (above 0) is reached, counts nothing and returns how long to wait.
  std::optional<std::chrono::seconds> Take(const ChatId& chat, int max_per_minute,
                                           Clock::time_point now = Clock::now());

 private:
  Mutex mutex_;
  std::unordered_map<ChatId, std::deque<Clock::time_point>> made_ GUARDED_BY(mutex_);  // in the last minute
};

// Keeps runs within the configured budget. A chat's usage is read from the store when its first run starts, and counted
// from then on; without a budget for chats nothing is read or kept. Thread-safe.
class UsageLimits {
 public:
  // A null `daily` means no limit for a day. Both must outlive this.
  UsageLimits(CheckpointStore& store, UsageBudget budget, PriceTable prices, DailyUsage* daily = nullptr);

  // Returns why the run may send no further request after this usage; null if there is no limit.
  using Check = std::function<std::optional<std::string>(const TokenUsage& used)>;
  // For a run of this model that is about to start, while the chat cannot start another. `before` is what the run used
  // in an earlier process. `own` replaces the budget except for the day. Fails as InteractionStore::LoadChat does.
  Result<Check> ForRun(const ChatId& chat, const std::string& model, const TokenUsage& before,
                       const std::optional<UsageBudget>& own = {});
  // For a run that is none of the chat: each call of the check counts what is new of its usage for the day. Call it
  // once more when the run has ended.
  Result<Check> ForTrial(const ChatId& chat, const std::string& model);
  // Counts an interaction that has ended, while its chat cannot start another.
  void Add(const Interaction& finished);
  void Forget(const ChatId& chat);

  // The same for a request without a chat. kForbidden (reason "budget_exceeded") if the day's tokens are used up.
  Result<void> ForRequest();
  void AddRequest(const TokenUsage& used);

 private:
  struct Spent {
    std::int64_t tokens = 0;
    double cost = 0;
  };
  void Count(Spent& spent, const std::string& model, const TokenUsage& usage) const;
  Result<Spent> Read(const ChatId& chat) const;
  void CountForDay(const TokenUsage& used);

  // Today's tokens, including those of runs so far.
  std::int64_t DayWith(const ChatId& chat, std::int64_t tokens);

  CheckpointStore& store_;
  DailyUsage* const daily_;
  const UsageBudget budget_;
  const PriceTable prices_;
  Mutex mutex_;
  std::unordered_map<ChatId, Spent> spent_ GUARDED_BY(mutex_);
  std::unordered_map<ChatId, std::int64_t> running_
      GUARDED_BY(mutex_);  // tokens of runs, if there is a limit for a day
};

// The usage of an interaction; of a running one, so far.
TokenUsage UsedBy(const Interaction& interaction);
// The usage of a whole history.
ChatUsage UsageOf(const History& history);

// The configured guardrails, ready for use. Immutable, thread-safe. Linear time in the length of the text, whatever the
// patterns.
class Guardrails {
 public:
  // kInvalidArgument if this is no pattern, is too large, or matches the empty text, which is everywhere.
  static Result<void> Check(const std::string& pattern);

  // A pattern that Check refuses refuses, or removes, everything.
  explicit Guardrails(const GuardrailOptions& options);
  ~Guardrails();

  // kInvalidArgument (reason "guardrail"); the error does not name the pattern.
  Result<void> Admit(std::string_view user_message) const;
  bool looks_at_output() const { return !output_.empty(); }
  std::string Redacted(std::string output) const;

 private:
  std::vector<std::unique_ptr<re2::RE2>> input_, output_;
};

// The guard of one run: asks the hooks, writes the audit log, and redacts secrets in the output of tools.
class RunGuard final : public CallGuard {
 public:
  struct Parts {  // all must outlive the guard
    AuditLog* audit = nullptr;
    Hooks* hooks = nullptr;
    const Redactor& redactor;
    const Guardrails& guardrails;
  };
  // `begun` if the run began in an earlier process.
  RunGuard(Parts parts, std::string chat_id, std::string interaction_id, std::string user_message, bool begun);

  bool reviews_requests() const override;
  Result<void> Begin(const std::stop_token& stop) override;
  Result<std::string> Admit(std::uint32_t round_index, const std::string& model, const std::stop_token& stop) override;
  Result<void> Heard(std::uint32_t round_index, const std::string& model, const std::string& text,
                     const std::stop_token& stop) override;
  std::optional<std::string> CheckAnswer(std::uint32_t round_index, int times_sent_back, const std::string& text,
                                         const std::stop_token& stop) override;
  Verdict Review(std::uint32_t round_index, const ToolCall& call, const std::stop_token& stop) override;
  Result<void> Note(AuditEntry entry) override;
  std::function<void(AuditEntry)> Noter() const override;
  std::string Redacted(std::string text) const override;
  ToolOutcome Passed(std::uint32_t round_index, const ToolCall& call, ToolOutcome outcome,
                     const std::stop_token& stop) override;
  std::function<std::string(std::string_view)> LiveFilter() const override;
  std::function<std::string(std::string_view)> StoredFilter() const override;

  // Whether there are hooks for after calls.
  bool hears_calls() const { return Wants(HookEvent::kAfterTool); }
  // Tells hooks the final status of the stored interaction; `stop` ends slow hooks.
  bool hears_end() const { return Wants(HookEvent::kAfterInteraction); }
  void Ended(InteractionStatus status, const std::stop_token& stop);

  // Writes no more audit lines, because the rest of this run happens in another process.
  void Mute() { muted_ = true; }

 private:
  bool Wants(HookEvent event) const { return parts_.hooks != nullptr && parts_.hooks->Wants(event); }
  HookFacts FactsOf(HookEvent event) const;
  Result<Hooks::Verdict> Ask(HookFacts facts, const std::stop_token& stop) const;

  const Parts parts_;
  const std::string chat_id_, interaction_id_, user_message_;
  std::atomic<bool> begun_;  // because sub-agents begin too
  std::atomic<bool> muted_ = false;
};

}  // namespace reprise
