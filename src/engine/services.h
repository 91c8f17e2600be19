#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "approval/requests.h"
#include "approval/rules.h"
#include "base/mutex.h"
#include "base/text.h"
#include "engine/checkpoint_saver.h"
#include "engine/editors.h"
#include "engine/elastic_pool.h"
#include "engine/jobs.h"
#include "engine/message_queue.h"
#include "engine/run_guard.h"
#include "reprise/engine.h"

namespace reprise {

// The services that all parts of the engine share. Each member synchronises itself or never changes.
// The chats of which something stored could not be read, as far as this process has looked. Thread-safe.
class DamagedChats {
 public:
  void Note(const ChatId& chat, bool is_damaged) {
    const MutexLock lock(mutex_);
    is_damaged ? static_cast<void>(chats_.insert(chat)) : static_cast<void>(chats_.erase(chat));
  }
  bool Has(const ChatId& chat) const {
    const MutexLock lock(mutex_);
    return chats_.contains(chat);
  }

 private:
  mutable Mutex mutex_;
  std::set<ChatId> chats_ GUARDED_BY(mutex_);
};

struct EngineServices {
  EngineServices(Engine::Parts given, EngineOptions chosen)
      : parts(std::move(given)),
        options(std::move(chosen)),
        approvals(delay(), Now, &changes),
        inputs(delay(), Now, &changes),
        usage_limits(parts.store, options.budget, options.prices, parts.usage),
        queues(parts.store.queues(), &changes),
        saver(parts.fallback_stores, pool, timer, options.save_timeout) {
    if (parts.changes || parts.attention) changes.OnAdded([this](const ChatChange& change) { Tell(change); });
  }
  EngineServices(const EngineServices&) = delete;
  EngineServices& operator=(const EngineServices&) = delete;

  Delay delay() {
    return [this](std::chrono::milliseconds pause, std::function<void()> call) { timer.After(pause, std::move(call)); };
  }
  // The approval mode of this chat: its own, else that of the run, else its folder's. A folder (or server) that refuses
  // calls that need approval does so in every chat, and a chat that cannot be read asks. kUnavailable if the store
  // cannot tell now.
  Result<ApprovalMode> ModeOf(const ChatId& chat, std::optional<ApprovalMode> of_run, ApprovalMode of_folder) const {
    if (of_folder == ApprovalMode::kDenyAll) return ApprovalMode::kDenyAll;
    const auto summary = parts.store.LoadSummary(chat);
    if (!summary && summary.error().code == ErrorCode::kUnavailable) return Fail(summary.error());
    const ApprovalMode otherwise = of_run.value_or(of_folder);
    if (!summary) return IsNotFound(summary.error()) ? otherwise : ApprovalMode::kAsk;
    return summary->approval_mode.value_or(otherwise);
  }
  // kForbidden (reason "mode_not_allowed") if the folder's mode, which holds for all its chats, allows no such choice.
  Result<void> CheckMode(std::optional<ApprovalMode> chosen, const WorkspaceParts& workspace) const {
    if (OptionsOf(workspace).approval_mode != ApprovalMode::kDenyAll ||
        chosen.value_or(ApprovalMode::kDenyAll) == ApprovalMode::kDenyAll)
      return {};
    return Fail(Reason::kModeNotAllowed, "the server's \"approval_mode\" is deny_all, which holds in every chat");
  }
  // What applies to texts of chats.
  struct TextRules {
    TextRules(const std::vector<std::string>& secrets, std::shared_ptr<const LearnedSecrets> learned,
              const GuardrailOptions& guards)
        : redactor(secrets, std::move(learned)), guardrails(guards) {}
    const Redactor redactor;
    const Guardrails guardrails;
  };
  std::shared_ptr<const TextRules> TextRulesOf(const WorkspaceParts& workspace) const {
    if (workspace.settings == nullptr) return text_rules;
    return std::make_shared<TextRules>(workspace.settings->secrets, parts.learned_secrets,
                                       workspace.settings->guardrails);
  }
  const EngineOptions& OptionsOf(const WorkspaceParts& workspace) const {
    return workspace.settings == nullptr ? options : workspace.settings->options;
  }
  // All that hold there now.
  ToolRules RulesIn(const WorkspaceParts& workspace) const {
    return Together(OptionsOf(workspace).rules, parts.added_rules ? parts.added_rules() : nullptr);
  }
  const ModelDirectory& ModelsOf(const WorkspaceParts& workspace) const {
    return workspace.settings == nullptr ? parts.models : workspace.settings->models;
  }
  // The folder with this path (ChatSummary::workspace). The failures of Workspaces::Open.
  Result<std::shared_ptr<const WorkspaceParts>> WorkspaceAt(const std::string& path) const {
    if (parts.workspaces == nullptr) return home;
    return parts.workspaces->Open(path.empty() ? home->path : path);
  }
  // That of a chat; of an unknown one, the server's.
  Result<std::shared_ptr<const WorkspaceParts>> WorkspaceOf(const ChatId& chat) const {
    if (parts.workspaces == nullptr) return home;
    const auto summary = parts.store.LoadSummary(chat);
    if (!summary && !IsNotFound(summary.error())) return Fail(summary.error());
    return WorkspaceAt(summary ? summary->workspace : std::string());
  }

  // Also of a question that a restarted server takes up: it waits again.
  void Tell(const ChatChange& change) const {
    if (parts.changes) parts.changes->Tell(change);
    const bool is_approval = change.kind == ChatChange::Kind::kApprovalOpened;
    if (!parts.attention || (!is_approval && change.kind != ChatChange::Kind::kInputOpened)) return;
    using Kind = Engine::Attention::Kind;
    parts.attention({is_approval ? Kind::kApproval : Kind::kQuestion, change.chat_id, change.request_id});
  }

  const Engine::Parts parts;
  const EngineOptions options;
  // The server's own folder.
  const std::shared_ptr<const WorkspaceParts> home =
      std::make_shared<WorkspaceParts>(WorkspaceParts{.path = options.workspace,
                                                      .tools = parts.tools,
                                                      .prompt = parts.prompt,
                                                      .history = parts.workspace_history,
                                                      .reader = parts.workspace_reader,
                                                      .instructions = parts.instructions,
                                                      .hooks = parts.hooks});
  const std::shared_ptr<const TextRules> text_rules =
      std::make_shared<TextRules>(parts.secrets, parts.learned_secrets, parts.guardrails);
  ChatChanges changes;
  ApprovalRequests approvals;
  InputRequests inputs;
  UsageLimits usage_limits;
  CallRate call_rate;
  MessageQueues queues;
  Editors editors;
  DamagedChats damaged;
  Mutex blaming;  // held by BlameFile
  // Threads come last, so that they stop before the things they use are gone.
  ElasticPool control;  // for work that must not wait for threads that runs hold
  ElasticPool pool;     // the runs' threads
  Timer timer;          // its calls use the pool
  CheckpointSaver saver;
  Jobs jobs{{.files = parts.files,
             .redactor = text_rules->redactor,
             .limits = options.jobs,
             .output = options.output,
             .on_change = [this](const ChatId& chat) { changes.Add(ChatChange::Kind::kJobsChanged, chat); }}};
};

inline Error Stopping() { return Refused(Reason::kStopping, "the server is stopping"); }

inline Error NoThreads(const char* detail) {
  return Refused(Reason::kOverloaded, "the system has no thread left for this interaction", detail);
}

}  // namespace reprise
