#include "engine/replays.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include "base/try.h"
#include "engine/attachments.h"
#include "engine/drift.h"
#include "engine/interactions.h"
#include "engine/recorded_replay.h"
#include "engine/recording.h"
#include "engine/services.h"

namespace reprise {

namespace {

bool Counts(const AgentEvent& event) {
  return !std::holds_alternative<event::Usage>(event.payload) && !std::holds_alternative<event::Retry>(event.payload) &&
         !std::holds_alternative<event::FilesChanged>(event.payload) &&  // these depend on the files at the time
         !std::holds_alternative<event::Sound>(event.payload) &&         // and what is said is compared as text
         !std::holds_alternative<event::JobStarted>(event.payload) &&
         !std::holds_alternative<event::JobEnded>(event.payload);
}

std::vector<AgentEvent> WhatCounts(const Interaction& interaction) {
  std::vector<AgentEvent> events;
  for (const AgentEvent& event : interaction.events) {
    if (Counts(event)) events.push_back(event);
  }
  return events;
}

// Removes values from random sources and clocks.
struct Strip {
  void operator()(event::ToolCallStarted& call) const { call.id.clear(); }
  // Files are stored again, under new ids.
  void operator()(event::ToolResult& result) const {
    result.id.clear();
    for (const Attachment& file : result.files) {
      const std::string& id = file.id.str();
      const std::size_t at = result.tool_output.find(id);
      if (at != std::string::npos) result.tool_output.erase(at, id.size());
    }
    result.files.clear();
  }
  void operator()(event::ApprovalRequired& asked) const {
    asked.approval_id.clear();
    asked.call_id.clear();
    asked.created_at = {};
    asked.expires_at.reset();
    asked.terms_digest.clear();  // not the agent's doing; the reason holds the parts that matter
  }
  void operator()(event::Approved& approved) const { approved.approval_id.clear(), approved.call_id.clear(); }
  void operator()(event::Rejected& rejected) const { rejected.approval_id.clear(), rejected.call_id.clear(); }
  void operator()(event::Nested& nested) const {
    nested.call_id.clear();
    std::visit(*this, nested.step);
  }
  void operator()(event::InputRequired& asked) const { asked.request_id.clear(), asked.call_id.clear(); }
  void operator()(event::InputReceived& received) const { received.request_id.clear(), received.call_id.clear(); }
  void operator()(event::TaskUpdated& updated) const { updated.call_id.reset(); }
  void operator()(event::PlanUpdated& updated) const { updated.call_id.reset(); }
  template <typename T>
  void operator()(T&) const {}
};

EventPayload Comparable(EventPayload payload) {
  std::visit(Strip{}, payload);
  return payload;
}

}  // namespace

ReplayReport CompareRuns(const Interaction& recorded, const Interaction& again) {
  const std::vector<AgentEvent> expected = WhatCounts(recorded), actual = WhatCounts(again);
  ReplayReport report;
  for (std::size_t i = 0; i < expected.size() || i < actual.size(); ++i) {
    const bool both = i < expected.size() && i < actual.size();
    if (both && expected[i].round_index == actual[i].round_index &&
        Comparable(expected[i].payload) == Comparable(actual[i].payload)) {
      ++report.events;
      continue;
    }
    Divergence divergence;
    if (i < expected.size()) {
      divergence.seq = expected[i].seq;
      divergence.expected = expected[i];
    } else {
      divergence.seq = recorded.events.empty() ? 2 : recorded.events.back().seq + 1;
    }
    if (i < actual.size()) divergence.actual = actual[i];
    divergence.reason = "the second run does something else than the first one did";
    report.divergence = std::move(divergence);
    break;
  }
  return report;
}

std::chrono::milliseconds PauseBetween(const AgentEvent& before, const AgentEvent& next, double speed) {
  // A changed clock or a damaged file can make a pause of any length.
  constexpr std::chrono::milliseconds kLongestPause = std::chrono::hours(24 * 365);
  const std::chrono::duration<double, std::milli> between = next.at - before.at;
  const double scaled = std::clamp(between.count() / speed, 0.0, static_cast<double>(kLongestPause.count()));
  return std::chrono::milliseconds(static_cast<std::int64_t>(scaled));
}

PacedEvents::PacedEvents(const Interaction& interaction, double speed, Timer& timer)
    : speed_(speed), timer_(timer), log_(std::make_shared<EventLog>()), events_(RecordedEvents(interaction)) {}

void PacedEvents::Start() { ShowDue(); }

void PacedEvents::ShowDue() {
  std::chrono::milliseconds pause{0};
  bool more = false;
  {
    const MutexLock lock(mutex_);
    while (next_ < events_.size() && pause.count() == 0) {
      log_->AppendRecorded(events_[next_]);
      if (++next_ == events_.size()) break;
      pause = PauseBetween(events_[next_ - 1], events_[next_], speed_);
    }
    more = next_ < events_.size();
  }
  if (!more) return log_->Close();
  log_->Publish();
  timer_.After(pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->ShowDue();
  });
}

void PacedEvents::Finish() {
  {
    const MutexLock lock(mutex_);
    for (; next_ < events_.size(); ++next_) log_->AppendRecorded(events_[next_]);
  }
  log_->Close();
}

Result<EventSubscription> Replays::Events(const ChatId& chat, InteractionId interaction, double speed) {
  const auto stored = TRY(interactions_.FindReplayable(chat, interaction));
  if (speed <= 0) return EventSubscription(chat, interaction, RecordedLog(stored), nullptr);
  auto paced = std::make_shared<PacedEvents>(stored, speed, services_.timer);
  {
    const MutexLock lock(mutex_);
    if (stopping_) return Fail(Stopping());
    std::erase_if(paced_, [](const auto& each) { return each.expired(); });
    paced_.push_back(paced);
  }
  paced->Start();
  auto log = paced->log();
  return EventSubscription(chat, interaction, std::move(log), std::move(paced));
}

Result<ReplayReport> Replays::Recorded(const ChatId& chat, InteractionId interaction, ReplayInput input) {
  const auto stored = TRY(interactions_.FindReplayable(chat, interaction));
  try {
    services_.pool.StartFirstThread();
  } catch (const std::system_error& error) {
    return Fail(NoThreads(error.what()));
  }
  const Executor executor = [this](std::function<void()> job) { services_.pool.Submit(std::move(job)); };
  auto report = TRY(ReplayRecorded(stored, executor));
  if (input == ReplayInput::kRecorded) return report;
  const auto workspace = TRY(services_.WorkspaceAt(stored.workspace));
  const ChatSummary summary = TRY(services_.parts.store.LoadSummary(chat));
  std::optional<FilesInStore> files;
  if (services_.parts.files) files.emplace(*services_.parts.files, chat);
  RequestBodies bodies(services_.parts.store, files ? &*files : nullptr);
  report.drift = TRY(FindDrift(stored, bodies,
                               {.workspace = *workspace,
                                .options = services_.OptionsOf(*workspace),
                                .models = services_.ModelsOf(*workspace),
                                .chosen_model = summary.chosen_model,
                                .effort = summary.effort,
                                .instructions = summary.instructions,
                                .documents = services_.parts.documents},
                               executor));
  return report;
}

Result<ReplayReport> Replays::Compare(const ChatId& chat, InteractionId recorded, InteractionId again) {
  const auto first = TRY(interactions_.FindReplayable(chat, recorded));
  const auto second = TRY(interactions_.FindReplayable(chat, again));
  return CompareRuns(first, second);
}

void Replays::Stop() {
  std::vector<std::shared_ptr<PacedEvents>> paced;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& each : std::exchange(paced_, {})) {
      if (auto still = each.lock()) paced.push_back(std::move(still));
    }
  }
  for (const auto& each : paced) each->Finish();
}

}  // namespace reprise
