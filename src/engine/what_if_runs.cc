#include "engine/what_if_runs.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "engine/attachments.h"
#include "engine/busy_chats.h"
#include "engine/interactions.h"
#include "engine/live_turn.h"
#include "engine/past_files.h"
#include "engine/recording.h"
#include "engine/replays.h"
#include "engine/request_body.h"
#include "engine/services.h"
#include "engine/what_if.h"
#include "engine/workspace_moves.h"

namespace reprise {
namespace {

constexpr std::size_t kMostRuns = 2;  // of a person at the same time

}  // namespace

struct WhatIfRuns::UnderWay {
  Interaction recorded;
  std::shared_ptr<const WorkspaceParts> workspace;
  EngineOptions options;  // of the folder, with the rules that people have added
  std::shared_ptr<const EngineServices::TextRules> rules;
  bool keep = false;
  UsageLimits::Check over_budget{};
  std::optional<FilesInStore> files{};
  std::optional<WhatIf> what_if{};
  std::shared_ptr<EventLog> log = std::make_shared<EventLog>();
  std::stop_source stop{};
};

// The prompt's and the tools' owner is the folder, which the run holds.
Result<std::shared_ptr<WhatIfRuns::UnderWay>> WhatIfRuns::Prepare(const ChatId& chat, InteractionId interaction,
                                                                  const WhatIfChanges& changes) {
  auto recorded = TRY(interactions_.FindReplayable(chat, interaction));
  TRY(CheckReplayable(recorded));
  auto workspace = TRY(services_.WorkspaceAt(recorded.workspace));
  EngineOptions options = services_.OptionsOf(*workspace);
  options.rules = services_.RulesIn(*workspace);
  if (!changes.allow_effects.empty() && options.approval_mode == ApprovalMode::kDenyAll) {
    return Fail(Reason::kModeNotAllowed,
                "this server's \"approval_mode\" is deny_all, so no tool may act outside the copy");
  }
  auto rules = services_.TextRulesOf(*workspace);
  if (changes.say) TRY(rules->guardrails.Admit(*changes.say));
  TRY(services_.usage_limits.ForRequest());
  const ChatSummary summary = TRY(services_.parts.store.LoadSummary(chat));
  const std::shared_ptr<UnderWay> run(new UnderWay{.recorded = std::move(recorded),
                                                   .workspace = std::move(workspace),
                                                   .options = std::move(options),
                                                   .rules = std::move(rules),
                                                   .keep = changes.keep});
  if (services_.parts.files) run->files.emplace(*services_.parts.files, chat);
  RequestBodies bodies(services_.parts.store, run->files ? &*run->files : nullptr);
  run->what_if.emplace(TRY(PrepareWhatIf(run->recorded, bodies,
                                         {.workspace = *run->workspace,
                                          .options = run->options,
                                          .models = services_.ModelsOf(*run->workspace),
                                          .chosen_model = summary.chosen_model,
                                          .effort = summary.effort,
                                          .instructions = summary.instructions,
                                          .documents = services_.parts.documents,
                                          .redactor = &run->rules->redactor,
                                          .guards = &run->rules->guardrails,
                                          .audit = services_.parts.audit},
                                         changes)));
  run->over_budget = TRY(services_.usage_limits.ForTrial(chat, run->what_if->turn.model.full_name));
  return run;
}

Result<void> WhatIfRuns::Enter(const std::shared_ptr<UnderWay>& run) {
  const MutexLock lock(mutex_);
  if (stopping_) return Fail(Stopping());
  if (under_way_.size() >= kMostRuns) {
    return Fail(Reason::kQueueFull, std::to_string(kMostRuns) +
                                        " such runs are under way already; try again when one "
                                        "has ended");
  }
  under_way_.insert(run);
  return {};
}

Result<EventSubscription> WhatIfRuns::Start(const ChatId& chat, InteractionId interaction,
                                            const WhatIfChanges& changes) {
  auto run = TRY(Prepare(chat, interaction, changes));
  try {
    threads_.StartFirstThread();
    services_.pool.StartFirstThread();
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  TRY(Enter(run));
  run->log->AppendRecorded(StartOf(run->what_if->turn.like));
  run->log->Publish();
  threads_.Submit([this, run] {
    Guarded("a what-if run", [&] { Make(*run); });
    run->log->Close();
    const MutexLock lock(mutex_);
    under_way_.erase(run);
    ended_.notify_all();
  });
  // The client's hold: the run ends when it leaves.
  const std::shared_ptr<void> hold(static_cast<void*>(run.get()), [run](void*) { run->stop.request_stop(); });
  return EventSubscription(chat, interaction, run->log, hold);
}

// What other chats of the workspace have changed since counts too.
Result<PastFiles> WhatIfRuns::FilesThen(const UnderWay& run) const {
  const std::string& workspace = run.workspace->path;
  RecordedChanges changes(workspace, services_.home->path);
  for (const ChatSummary& summary : TRY(services_.parts.store.ListChats())) {
    const bool is_here = (summary.workspace.empty() ? services_.home->path : summary.workspace) == workspace;
    if (!is_here && summary.id != run.recorded.chat_id) continue;
    if (const auto chat = services_.parts.store.LoadChat(summary.id)) changes.Add(*chat);
  }
  PastFiles then = changes.At(run.recorded, run.what_if->at);
  WorkspaceHistory* const history = run.workspace->history;
  then.content = [history, changes = std::move(changes)](const FileVersion& version) -> std::optional<std::string> {
    if (history == nullptr) return std::nullopt;
    for (const ChatId& chat : changes.ChatsWith(version.digest)) {
      if (auto content = history->ContentOf(chat, version)) return *std::move(content);
    }
    return std::nullopt;
  };
  return then;
}

void WhatIfRuns::Make(UnderWay& run) {
  LiveOptions options = run.what_if->Options([this, &run] { return FilesThen(run); });
  options.delay = services_.delay();
  options.over_budget = run.over_budget;
  // Those of the record have their numbers, and the others follow, with the text between them.
  const auto& before = run.what_if->turn.before;
  options.on_event = [&run, last = before.empty() ? 0 : before.back().seq](const AgentEvent& event) {
    if (event.seq <= last) {
      run.log->AppendRecorded(event);
    } else {
      run.log->Append(event.round_index, event.payload, event.at);
    }
    run.log->Publish();
  };
  options.on_delta = [&run](LiveOptions::Delta kind, std::uint32_t round, std::string_view text) {
    const bool is_text = kind == LiveOptions::Delta::kText;
    is_text ? run.log->AppendTextDelta(round, text) : run.log->AppendThinkingDelta(round, text);
    run.log->Publish();
  };
  LiveRun made = RunLive(run.what_if->turn, options, run.stop.get_token(),
                         [this](std::function<void()> job) { services_.pool.Submit(std::move(job)); });
  static_cast<void>(run.over_budget(made.interaction.usage));  // counts the last response
  ShowEnd(run, std::move(made));
}

// The head stays, and the workspace too: what the turn did to files happened in the copy. In a database the head moves
// with the turn, and back; if the process ends between these steps, the kept turn is the head.
Result<InteractionId> WhatIfRuns::Keep(const UnderWay& run, Interaction made) {
  if (made.status != InteractionStatus::kCompleted) {
    return Fail(ErrorCode::kConflict, "it did not come to its end, so it is not kept");
  }
  const ChatId chat = made.chat_id;
  auto kept = TRY(AsBranch(run.recorded, *run.what_if, std::move(made), services_.parts.store));
  return busy_.WhileIdle(chat, [&]() -> Result<InteractionId> {
    const auto head = TRY(services_.parts.store.LoadSummary(chat)).head;
    TRY(services_.parts.store.LoadInteraction(chat, run.recorded.id));  // its branch may be gone by now
    const auto stands_at = workspace_.StandsAt(chat, head);
    if (workspace_.is_on() && stands_at != kept.parent_id) kept.record->files_from = stands_at;
    const auto hold = TRY(
        services_.parts.runs.Begin({.chat = chat, .expected_head = std::optional<std::optional<InteractionId>>(head)}));
    NameBranch(kept, hold->id());
    TRY(hold->Finish(kept));
    if (head && TRY(services_.parts.store.LoadSummary(chat)).head != head) {
      TRY(services_.parts.store.MoveHead(chat, *head));
    }
    workspace_.HeadMoved(chat, stands_at, head);
    services_.usage_limits.Forget(chat);
    services_.changes.Add(ChatChange::Kind::kHeadMoved, chat);
    return kept.id;
  });
}

void WhatIfRuns::ShowEnd(UnderWay& run, LiveRun made) {
  Interaction& interaction = made.interaction;
  const auto& before = run.what_if->turn.before;
  Json files = Json::array();
  std::string diff;
  for (const WorkspaceChange& each : NetChanges(interaction.events, before.empty() ? 0 : before.back().seq)) {
    files.push_back(ToValidUtf8(each.path));
    if (made.copy) diff += made.copy->DiffOf(each);
  }
  Json frame = {{"files", std::move(files)}, {"diff", ToValidUtf8(diff)}, {"first_difference", nullptr}};
  if (const auto found = CompareRuns(run.recorded, interaction).divergence) {
    frame["first_difference"] = {{"seq", found->seq},
                                 {"recorded", found->expected ? ToJson(*found->expected) : Json()},
                                 {"what_if", found->actual ? ToJson(*found->actual) : Json()}};
  }
  const std::uint32_t round = interaction.events.empty() ? 0 : interaction.events.back().round_index;
  const InteractionStatus status = interaction.status;
  if (run.keep) {
    const auto kept = Keep(run, std::move(interaction));
    frame["kept"] = kept ? Json(kept->str()) : Json();
    if (!kept) frame["not_kept"] = kept.error().message;
  }
  run.log->AppendFrames("event: what_if\ndata: " + DumpJson(frame) + "\n\n");
  run.log->Append(round, event::InteractionComplete{run.recorded.id.str(), status});
}

void WhatIfRuns::Stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  const auto all = under_way_;
  lock.unlock();
  for (const auto& run : all) run->stop.request_stop();
  lock.lock();
  ended_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_.empty(); });
}

}  // namespace reprise
