#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/present_folders.h"
#include "base/logging.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "domain/codec.h"
#include "engine/attachments.h"
#include "engine/drift.h"
#include "engine/elastic_pool.h"
#include "engine/recorded_replay.h"
#include "engine/recording.h"
#include "engine/replays.h"
#include "engine/request_body.h"
#include "terminal/console.h"

namespace reprise {
namespace {

std::string NameOf(const Interaction& interaction) { return interaction.chat_id.str() + "/" + interaction.id.str(); }

std::string EventLine(const std::optional<AgentEvent>& event) {
  return event ? VisibleLine(DumpJson(ToJson(*event))) : "nothing";
}

void PrintReport(const Interaction& interaction, const ReplayReport& report, bool json) {
  if (json) {
    Json line = ToJson(report);
    line["mode"] = "recorded";
    line["chat_id"] = interaction.chat_id.str();
    line["interaction_id"] = interaction.id.str();
    PrintDocument(line);
    return;
  }
  if (const auto& drift = report.drift) {
    for (const Drift& each : drift->found) Print(NameOf(interaction) + ": " + Describe(each) + "\n");
    const bool is_whole = drift->not_compared.empty();
    if (drift->found.empty()) {
      Print(NameOf(interaction) + ": " + Counted(drift->requests, "request") +
            (drift->requests == 1 ? " is that of today" : " are those of today") +
            (is_whole ? "" : ", as far as they are compared") + "\n");
    }
    for (const std::string& why : std::set(drift->not_compared.begin(), drift->not_compared.end())) {
      Print(NameOf(interaction) + ": not compared: " + VisibleLine(why) + "\n");
    }
  }
  if (!report.divergence) {
    Print(NameOf(interaction) + ": " + std::to_string(report.events) + " events match\n");
    return;
  }
  const Divergence& found = *report.divergence;
  Print(NameOf(interaction) + ": differs at event " + std::to_string(found.seq) + ": " + found.reason +
        "\n  recorded: " + EventLine(found.expected) + "\n  replayed: " + EventLine(found.actual) + "\n");
}

// Without pauses if `speed` is 0.
void PrintEvents(const Interaction& interaction, bool json, double speed) {
  const AgentEvent* before = nullptr;
  const std::vector<AgentEvent> events = RecordedEvents(interaction);
  for (const AgentEvent& event : events) {
    if (before != nullptr && speed > 0) {
      FlushOutput();
      std::this_thread::sleep_for(PauseBetween(*before, event, speed));
    }
    before = &event;
    if (json) {
      PrintDocument(ToJson(event));
    } else {
      Print("id: " + std::to_string(event.seq) + "\nevent: " + std::string(EventName(event.payload)) +
            "\ndata: " + DumpJson(ToJson(event)) + "\n\n");
    }
  }
}

// Compares the requests of a stored interaction with those of today.
using Drifts = std::function<Result<DriftReport>(const Interaction&, const Executor&)>;

// A line for each difference, or for the match, on stdout; with --json a document per line.
int Replay(const Interaction& interaction, const CommandLine& line, const Drifts& drifts = {}) {
  if (line.mode == "events") {
    PrintEvents(interaction, line.json, line.speed);
    return kExitOk;
  }
  SetLogLevel(LogLevel::kError);  // failures of the recorded run are not news
  ElasticPool pool;
  const Executor executor = [&pool](std::function<void()> job) { pool.Submit(std::move(job)); };
  auto report = ReplayRecorded(interaction, executor);
  auto drift = report && drifts ? drifts(interaction, executor) : DriftReport();
  if (!report || !drift) {
    Warn(NameOf(interaction) + ": " + (report ? drift.error() : report.error()).message);
    return kExitFailure;
  }
  if (drifts) report->drift = *std::move(drift);
  PrintReport(interaction, *report, line.json);
  return report->divergence || (report->drift && !report->drift->found.empty()) ? kExitFailure : kExitOk;
}

// Whether each request on record adds up to the body that was sent.
bool CheckRequests(const Interaction& interaction, RequestBodies& bodies) {
  const std::vector<std::string> faults = bodies.FaultsOf(interaction);
  if (!faults.empty()) Warn(NameOf(interaction) + ": " + faults.front());
  return faults.empty();
}

// All branches, because superseded interactions are recordings too.
Exited ReplayChat(ChatReader& reader, const RecordReference& what, const CommandLine& line) {
  InteractionStore& store = reader.store();
  const std::string& folder = reader.options().data_dir;
  FilesInStore files(reader.files(), what.chat);
  RequestBodies bodies(store, &files);
  std::unique_ptr<PresentFolders> present;
  Drifts drifts;
  if (line.current) {
    present = TRY(PresentFolders::Open(reader.options()));
    drifts = [&](const Interaction& interaction, const Executor& executor) -> Result<DriftReport> {
      PresentAgent agent = TRY(present->At(interaction.workspace));
      const auto summary = store.LoadSummary(what.chat);
      if (summary) {
        agent.chosen_model = summary->chosen_model;
        agent.effort = summary->effort;
        agent.instructions = summary->instructions;
      }
      return FindDrift(interaction, bodies, agent, executor);
    };
  }
  const auto replay = [&](const Interaction& interaction) -> int {
    const int outcome = Replay(interaction, line, drifts);
    return outcome == kExitOk && !CheckRequests(interaction, bodies) ? kExitFailure : outcome;
  };
  if (what.interaction) {
    const auto interaction = store.LoadInteraction(what.chat, *what.interaction);
    return interaction ? replay(*interaction) : Complain(NotThere(interaction.error(), what, folder));
  }
  const auto chat = store.LoadChat(what.chat);
  if (!chat) return Complain(NotThere(chat.error(), what, folder));
  if (chat->interactions.empty() && chat->damaged.empty()) Warn(NothingFinished(what.chat).message);
  int status = chat->damaged.empty() ? kExitOk : kExitFailure;
  for (const Interaction& each : chat->interactions) {
    // One by one, because a long chat loads without their states.
    const auto interaction = store.LoadInteraction(what.chat, each.id);
    const int outcome = interaction ? replay(*interaction) : Complain(interaction.error());
    if (outcome != kExitOk) status = kExitFailure;
  }
  ComplainOfDamage(*chat);
  return status;
}

Exited ReplayFile(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto interaction = ReadLoneInteraction(line.argument, options);
  return interaction ? Replay(*interaction, line) : Complain(interaction.error());
}

}  // namespace

Exited RunReplay(const CommandLine& line, const Environment& environment) {
  if (line.speed > 0 && line.mode != "events") return Misused("--speed is for --mode events");
  if (line.current && line.mode == "events") return Misused("--input current is for --mode recorded");
  auto stored = TRY(OfUse(FindStored(line.argument, line.flags, environment)));
  if (stored) return ReplayChat(stored->reader, stored->what, line);
  if (line.current) return Misused("--input current is for stored chats; `reprise test` takes exported ones");
  return ReplayFile(line, environment);
}

}  // namespace reprise
