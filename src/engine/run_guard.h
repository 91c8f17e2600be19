#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "agent/agent.h"
#include "base/text.h"
#include "engine/limits.h"
#include "reprise/audit_log.h"
#include "reprise/hooks.h"
#include "reprise/interaction.h"

namespace reprise {

// The guard of one run: asks the hooks, writes the audit log, takes secrets out of what tools say.
class RunGuard final : public CallGuard {
 public:
  struct Parts {  // all must outlive the guard
    AuditLog* audit = nullptr;
    Hooks* hooks = nullptr;
    const Redactor& redactor;
    const Guardrails& guardrails;
  };
  // `begun`: before its process was another.
  RunGuard(Parts parts, std::string chat_id, std::string interaction_id, std::string user_message, bool begun);

  bool reviews_requests() const override;
  Result<void> Begin(const std::stop_token& stop) override;
  Result<std::string> Admit(std::uint32_t round_index, const std::string& model, const std::stop_token& stop) override;
  Result<void> Heard(std::uint32_t round_index, const std::string& model, const std::string& text,
                     const std::stop_token& stop) override;
  Verdict Review(std::uint32_t round_index, const ToolCall& call, const std::stop_token& stop) override;
  Result<void> Note(AuditEntry entry) override;
  std::string Redacted(std::string text) const override;
  ToolOutcome Passed(std::uint32_t round_index, const ToolCall& call, ToolOutcome outcome,
                     const std::stop_token& stop) override;
  std::function<std::string(std::string_view)> LiveFilter() const override;

  // Whether hooks run after a call.
  bool hears_calls() const { return Wants(HookEvent::kAfterTool); }
  // The interaction is stored, and this is what it ended as. Hooks that take long are ended by `stop`.
  bool hears_end() const { return Wants(HookEvent::kAfterInteraction); }
  void Ended(InteractionStatus status, const std::stop_token& stop);

  // Nothing more is put on account: what is left of this run happens in another process.
  void Mute() { muted_ = true; }

 private:
  bool Wants(HookEvent event) const { return parts_.hooks != nullptr && parts_.hooks->Wants(event); }
  HookFacts FactsOf(HookEvent event) const;
  Result<Hooks::Verdict> Ask(HookFacts facts, const std::stop_token& stop) const;

  const Parts parts_;
  const std::string chat_id_, interaction_id_, user_message_;
  std::atomic<bool> begun_;  // sub-agents begin too
  std::atomic<bool> muted_ = false;
};

}  // namespace reprise
