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
#include "engine/interactions.h"
#include "engine/live_turn.h"
#include "engine/past_files.h"
#include "engine/recording.h"
#include "engine/replays.h"
#include "engine/request_body.h"
#include "engine/services.h"
#include "engine/what_if.h"

namespace reprise {
namespace {

constexpr std::size_t kMostRuns = 2;  // of a person at the same time

}  // namespace

struct WhatIfRuns::UnderWay {
  Interaction recorded;
  std::shared_ptr<const WorkspaceParts> workspace;
  std::shared_ptr<const EngineServices::TextRules> rules;
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
  const EngineOptions& options = services_.OptionsOf(*workspace);
  if (!changes.allow_effects.empty() && options.approval_mode == ApprovalMode::kDenyAll) {
    return Fail(Reason::kModeNotAllowed,
                "this server's \"approval_mode\" is deny_all, so no tool may act outside the copy");
  }
  auto rules = services_.TextRulesOf(*workspace);
  if (changes.say) TRY(rules->guardrails.Admit(*changes.say));
  TRY(services_.usage_limits.ForRequest());
  const std::string chosen = TRY(services_.parts.store.LoadSummary(chat)).chosen_model;
  const std::shared_ptr<UnderWay> run(
      new UnderWay{.recorded = std::move(recorded), .workspace = std::move(workspace), .rules = std::move(rules)});
  if (services_.parts.files) run->files.emplace(*services_.parts.files, chat);
  RequestBodies bodies(services_.parts.store, run->files ? &*run->files : nullptr);
  run->what_if.emplace(TRY(PrepareWhatIf(run->recorded, bodies,
                                         {.workspace = *run->workspace,
                                          .options = options,
                                          .models = services_.ModelsOf(*run->workspace),
                                          .chosen_model = chosen,
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
  const LiveRun made = RunLive(run.what_if->turn, options, run.stop.get_token(),
                               [this](std::function<void()> job) { services_.pool.Submit(std::move(job)); });
  static_cast<void>(run.over_budget(made.interaction.usage));  // counts the last response
  ShowEnd(run, made);
}

void WhatIfRuns::ShowEnd(UnderWay& run, const LiveRun& made) const {
  const Interaction& interaction = made.interaction;
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
  run.log->AppendFrames("event: what_if\ndata: " + DumpJson(frame) + "\n\n");
  const AgentEvent* const last = interaction.events.empty() ? nullptr : &interaction.events.back();
  run.log->Append(last ? last->round_index : 0, event::InteractionComplete{interaction.id.str(), interaction.status});
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
