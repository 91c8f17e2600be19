#pragma once

#include <functional>
#include <string>
#include <utility>

#include "approval/requests.h"
#include "base/text.h"
#include "engine/checkpoint_saver.h"
#include "engine/editors.h"
#include "engine/elastic_pool.h"
#include "engine/message_queue.h"
#include "engine/run_guard.h"
#include "reprise/engine.h"

namespace reprise {

// The services that all parts of the engine share. Each member synchronises itself or never changes.
struct EngineServices {
  EngineServices(Engine::Parts given, EngineOptions chosen)
      : parts(std::move(given)),
        options(std::move(chosen)),
        approvals(delay(), Now, &changes),
        inputs(delay(), Now, &changes),
        usage_limits(parts.store, options.budget, options.prices, parts.usage),
        call_rate(options.max_tool_calls_per_minute),
        queues(parts.store, &changes),
        saver(parts.fallback_stores, pool, timer, options.save_timeout) {
    if (parts.changes) changes.OnAdded([this](const ChatChange& change) { parts.changes->Tell(change); });
  }
  EngineServices(const EngineServices&) = delete;
  EngineServices& operator=(const EngineServices&) = delete;

  Delay delay() {
    return [this](std::chrono::milliseconds pause, std::function<void()> call) { timer.After(pause, std::move(call)); };
  }
  // The approval mode of this chat: its own, else the server's. A server that refuses calls that need approval does so
  // in every chat, and a chat that cannot be read asks. kUnavailable if the store cannot tell now.
  Result<ApprovalMode> ModeOf(const ChatId& chat) const {
    if (options.approval_mode == ApprovalMode::kDenyAll) return ApprovalMode::kDenyAll;
    const auto summary = parts.store.LoadSummary(chat);
    if (!summary && summary.error().code == ErrorCode::kUnavailable) return Fail(summary.error());
    if (!summary) return IsNotFound(summary.error()) ? options.approval_mode : ApprovalMode::kAsk;
    return summary->approval_mode.value_or(options.approval_mode);
  }
  RunGuard::Parts guard_parts() const { return {parts.audit, parts.hooks, redactor, guardrails}; }

  const Engine::Parts parts;
  const EngineOptions options;
  const Redactor redactor{parts.secrets};
  const Guardrails guardrails{parts.guardrails};
  ChatChanges changes;
  ApprovalRequests approvals;
  InputRequests inputs;
  UsageLimits usage_limits;
  CallRate call_rate;
  MessageQueues queues;
  Editors editors;
  // Threads come last, so that they stop before the things they use are gone.
  ElasticPool control;  // for work that must not wait for threads that runs hold
  ElasticPool pool;     // the runs' threads
  Timer timer;          // its calls use the pool
  CheckpointSaver saver;
};

inline Error Stopping() { return Refused(Reason::kStopping, "the server is stopping"); }

inline Error NoThreads(const char* detail) {
  return Refused(Reason::kOverloaded, "the system has no thread left for this interaction", detail);
}

}  // namespace reprise
