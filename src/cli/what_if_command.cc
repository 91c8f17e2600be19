#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/present_folders.h"
#include "app/prompt_files.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/live_runs.h"
#include "cli/new_rules.h"
#include "cli/recorded_chats.h"
#include "cli/what_if_report.h"
#include "client/archive/chat_names.h"
#include "client/run_stream.h"
#include "client/server_link.h"
#include "domain/codec.h"
#include "engine/recording.h"
#include "engine/what_if.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

Json BodyOf(const WhatIfRequest& wanted, std::optional<std::uint64_t> at) {
  const WhatIfChanges& changes = wanted.changes;
  Json body = {{"keep", true}};
  if (at) body["at"] = *at;
  if (!wanted.models.empty()) body["model"] = wanted.models.front();
  if (changes.say) body["say"] = *changes.say;
  if (changes.answer) body["answer"] = *changes.answer ? "yes" : "no";
  if (changes.result) body["result"] = *changes.result;
  if (changes.fail) body["fail"] = *changes.fail == WhatIfChanges::Failure::kTimeout ? "timeout" : "error";
  if (!changes.allow_effects.empty()) body["allow_effects"] = changes.allow_effects;
  return body;
}

// What the server streams of a run.
struct Streamed {
  Interaction made;
  Json frame{};  // "what_if"
};

Result<Streamed> Follow(RunStream& run, Interaction like) {
  Streamed streamed{.made = std::move(like)};
  streamed.made.events.clear();
  while (!run.ended()) {
    pollfd ready{run.descriptor(), POLLIN, 0};
    if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return Fail(ErrorCode::kIo, "the server cannot be waited for");
    run.Receive();
    while (auto heard = run.Next()) {
      if (heard->name == "what_if") streamed.frame = std::move(heard->data);
      if (heard->event) streamed.made.events.push_back(*std::move(heard->event));
    }
  }
  TRY(*run.ended());
  if (!run.is_complete() || streamed.frame.is_null()) {
    return Fail(ErrorCode::kUnavailable, "the server broke off the run, so nothing was kept");
  }
  const RunState& state = run.state();
  streamed.made.status = *state.status;
  streamed.made.model = state.model;
  streamed.made.error.reset();
  if (!state.failure.message.empty()) streamed.made.error = InteractionError{state.failure.code, state.failure.message};
  return streamed;
}

TriedRun RunOf(const Streamed& streamed, std::size_t recorded_events, const ModelPrice* price) {
  Interaction made = streamed.made;
  made.usage = {};
  made.completed_at.reset();
  for (std::size_t i = recorded_events; i < made.events.size(); ++i) {
    if (const auto* used = std::get_if<event::Usage>(&made.events[i].payload)) made.usage += used->tokens;
  }
  TriedRun run{SideOf(made, price)};
  run.was_made = true;
  for (const Json& file : MemberOf(streamed.frame, "files")) {
    if (file.is_string()) run.files.push_back(file.get<std::string>());
  }
  run.diff = TextMember(streamed.frame, "diff");
  if (const Json& found = MemberOf(streamed.frame, "first_difference"); found.is_object()) {
    const auto event = [](const Json& json) {
      const auto read = AgentEventFromJson(json);
      return read ? std::optional(*read) : std::nullopt;
    };
    const Json& seq = MemberOf(found, "seq");
    run.difference = Divergence{.seq = seq.is_number_unsigned() ? seq.get<std::uint64_t>() : 0,
                                .expected = event(MemberOf(found, "recorded")),
                                .actual = event(MemberOf(found, "what_if"))};
  }
  run.kept = TextMember(streamed.frame, "kept");
  run.not_kept = TextMember(streamed.frame, "not_kept");
  return run;
}

// `what-if --keep`: the run is made by the server of the data folder, which alone may store it as a branch. `what`:
// CHAT/INTERACTION.
Exited KeepWhatIf(const CommandLine& line, const Environment& environment, const std::string& what,
                  std::optional<std::uint64_t> at) {
  const auto began = std::chrono::steady_clock::now();
  ServerLink link(line.flags, environment, std::nullopt, /*restarts=*/false);
  TRY(OfUse(link.Check()));
  TRY(link.Reach({}));
  const auto target = TRY(OfUse(FindRecord(what, NamesAt(link.server()))));
  if (!target.interaction) return Misused("--keep takes CHAT/INTERACTION, a turn of a stored chat");
  const std::string path = RunPath({target.chat, *target.interaction});
  const Interaction recorded = TRY(InteractionFromJson(TRY(link.Call("GET", path))));
  RunStream stream(link.server(), target.chat.str());
  stream.Start(path + "/what_if", BodyOf(line.what_if, at));
  const auto streamed = Follow(stream, recorded);
  const bool is_misused =
      !streamed && (streamed.error().Is(Reason::kInvalidRequest) || streamed.error().Is(Reason::kUnknownModel));
  if (is_misused) return Misused(streamed.error().message);
  const Streamed& made = TRY(streamed);

  const auto price = link.options().prices.find(made.made.model);
  const bool is_priced = price != link.options().prices.end();
  const std::size_t before = static_cast<std::size_t>(
      std::ranges::count_if(recorded.events, [&](const AgentEvent& each) { return at && each.seq <= *at; }));
  TriedTurn tried{.chat = target.chat.str(), .turn = target.interaction->str(), .at = at.value_or(0)};
  tried.recorded = SideOf(recorded, is_priced ? &price->second : nullptr);
  tried.runs.push_back(RunOf(made, before, is_priced ? &price->second : nullptr));
  TriedRun& run = tried.runs.front();
  if (line.what_if.switches && !run.kept.empty()) {
    TRY(link.Call("POST", "/chats/" + tried.chat + "/head", {{"interaction_id", run.kept}}));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  run.ms = took.count() * 1000;
  const WhatIfReport report{
      .turns = {std::move(tried)},
      .seconds = took.count(),
      .asked = Grouped(run.usage.input_tokens) + " input and " + Grouped(run.usage.output_tokens) + " output tokens"};
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  Print(line.json ? JsonText(report) : TerminalText(report, DecideColour(line.colour, environment, is_terminal)));
  return report.is_good() ? kExitOk : kExitFailure;
}

// CHAT, CHAT/INTERACTION@SEQ, or an exported chat.
struct Target {
  std::string what;
  std::optional<std::uint64_t> at{};
};

Result<Target> ParseTarget(const std::string& text) {
  const std::size_t sign = text.rfind('@');
  if (sign == std::string::npos || IsThere(text)) return Target{text};
  const auto at = ParseNumber<std::uint64_t>(std::string_view(text).substr(sign + 1));
  if (!at) return Target{text};  // a title may have an @
  Target target{.what = text.substr(0, sign), .at = at};
  if (*at == 0) return Fail(ErrorCode::kInvalidArgument, "the first event is 1: " + text);
  if (IsThere(target.what) || target.what.find('/') == std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument, "an event belongs to one turn, of a stored chat or an exported one: " +
                                                 target.what + "/INTERACTION@" + std::to_string(*at));
  }
  return target;
}

Result<ToolRules> RulesIn(const std::string& path, const Environment& environment) {
  if (path.empty()) return ToolRules();
  auto read = ReadNewRules(path, environment);
  if (!read) return Fail(ErrorCode::kInvalidArgument, read.error().message);
  if (read->options.tools.rules.empty()) {
    return Fail(ErrorCode::kInvalidArgument, path + " has no rules: {\"tools\": {\"rules\": [...]}}");
  }
  return std::make_shared<const std::vector<ToolRule>>(std::move(read->options.tools.rules));
}

class Trying final : public RecordedChatTaker {
 public:
  Trying(const CommandLine& line, std::unique_ptr<PresentFolders> present, LiveRuns& live)
      : line_(line), present_(std::move(present)), live_(live) {}

  void Begin(std::optional<std::uint64_t> at) { at_ = at; }
  Result<void> Take(const RecordedChat& chat) override;
  void TakeBroken(const std::string& name, const std::string& file, const Error& why) override {
    report_.turns.push_back({.chat = name, .turn = "", .file = file, .failure = why.message});
  }
  const WhatIfReport& report() const { return report_; }

 private:
  Result<void> Prepare(const RecordedChat& chat, std::span<const SuiteChecks> checks, const Interaction& turn,
                       std::size_t number, TriedTurn& tried);

  const CommandLine& line_;
  const std::unique_ptr<PresentFolders> present_;
  LiveRuns& live_;
  std::optional<std::uint64_t> at_{};
  std::vector<LiveTest> tests_{};  // of the chat under way
  WhatIfReport report_;
};

// Adds the tests of a turn, one for each model.
Result<void> Trying::Prepare(const RecordedChat& chat, std::span<const SuiteChecks> checks, const Interaction& turn,
                             std::size_t number, TriedTurn& tried) {
  TRY(CheckReplayable(turn));
  const PresentAgent agent = TRY(AgentFor(*present_, chat, turn));
  const auto price = agent.options.prices.find(turn.model);
  tried.recorded = SideOf(turn, price == agent.options.prices.end() ? nullptr : &price->second);
  auto models = line_.what_if.models;
  if (models.empty()) models.emplace_back();
  for (const std::string& model : models) {
    WhatIfChanges changes = line_.what_if.changes;
    changes.at = at_;
    changes.model = model;
    WhatIf what_if = TRY(PrepareWhatIf(turn, *chat.bodies, agent, changes));
    TRY(live_.CheckPrice(what_if.turn));
    TRY(live_.CheckJudges(what_if.turn, checks, number));
    tests_.push_back({.turn = std::move(what_if.turn),
                      .number = number,
                      .files_then = [&chat, turn, at = what_if.at] { return chat.files_at(turn, at); },
                      .allow_effects = std::move(what_if.allow_effects),
                      .is_free = true,
                      .grader = GraderFor(chat.file)});
  }
  return {};
}

Result<void> Trying::Take(const RecordedChat& chat) {
  for (const auto& damaged : chat.damaged) TakeBroken(chat.name, "", damaged.error);
  if (chat.turns.empty() && chat.damaged.empty()) {
    return TakeBroken(chat.name, chat.file, NothingFinished(chat.chat)), Result<void>();
  }
  std::string faulty;
  const auto checks = ChecksBeside(chat, faulty);
  if (!checks) return TakeBroken(chat.name, faulty, checks.error()), Result<void>();
  tests_.clear();
  std::vector<std::size_t> of_turn;  // for each test, its turn in the report
  std::vector<Interaction> turns;    // likewise for each turn of the chat
  const std::size_t first = report_.turns.size();
  for (std::size_t i = 0; i < chat.turns.size(); ++i) {
    if (chat.only && chat.turns[i] != *chat.only) continue;
    auto turn = chat.bodies->store().LoadInteraction(chat.chat, chat.turns[i]);
    if (turn && turn->user_message.empty() && !chat.only) continue;  // an act of a person
    TriedTurn tried{.chat = chat.name, .turn = chat.turns[i].str(), .file = chat.file, .at = at_.value_or(0)};
    const std::size_t before = tests_.size();
    const auto prepared = turn ? Prepare(chat, *checks, *turn, i + 1, tried) : Fail(turn.error());
    if (!prepared) {
      while (tests_.size() > before) tests_.pop_back();
      tried.failure = prepared.error().message;
      if (chat.only && prepared.error().code == ErrorCode::kInvalidArgument) return Fail(prepared.error());
    }
    of_turn.resize(tests_.size(), turns.size());
    report_.turns.push_back(std::move(tried));
    turns.push_back(turn ? *std::move(turn) : Interaction{.id = chat.turns[i], .chat_id = chat.chat});
  }
  const auto runs = live_.Make(tests_, *checks, chat.content_of);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const JudgedRun& each : runs[i]) {
      report_.turns[first + of_turn[i]].runs.push_back(RunOf(turns[of_turn[i]], each));
    }
  }
  return {};
}

}  // namespace

Exited RunWhatIf(const CommandLine& line, const Environment& environment) {
  SetLogLevel(LogLevel::kError);
  const auto began = std::chrono::steady_clock::now();
  std::vector<Target> targets;
  for (const std::string& what : line.arguments) targets.push_back(TRY(OfUse(ParseTarget(what))));
  if (line.what_if.keep) {
    const bool is_one = targets.size() == 1 && line.what_if.models.size() < 2 && !IsThere(targets.front().what);
    if (!is_one) return Misused("--keep takes one turn of a stored chat, and one model");
    return KeepWhatIf(line, environment, targets.front().what, targets.front().at);
  }
  const Options options = TRY(OfUse(LoadOptions(line.flags, environment)));
  if (line.flags.contains("prompt-dir") &&
      IsDirectory(options.prompt_dir)) {  // a change that is not made tries nothing
    TRY(OfUse(PromptFolder(options, Resolved(options.workspace).string()).Check()));
  }
  auto present = TRY(OfUse(PresentFolders::Open(options, TRY(OfUse(RulesIn(line.what_if.rules_file, environment))))));
  WorkCounter counter;
  Progress progress(counter, environment);  // before any thread, because it takes the signals
  LiveRequest wanted = line.live;
  wanted.unrecorded = Unrecorded::kRun;
  wanted.runs = line.what_if.times;
  LiveRuns live(wanted, counter, progress);
  Trying trying(line, std::move(present), live);
  RecordedChats chats(line.flags, environment);
  int status = kExitOk;
  for (const Target& target : targets) {
    if (counter.stop_requested()) break;
    trying.Begin(target.at);
    status = std::max(status, chats.TakeOrComplain(target.what, trying));
  }
  WhatIfReport report = trying.report();
  if (status != kExitOk && report.turns.empty()) return status;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  report.asked = live.Spent();
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  Print(line.json ? JsonText(report) : TerminalText(report, DecideColour(line.colour, environment, is_terminal)));
  progress.End();
  return report.is_good() && status == kExitOk ? kExitOk : kExitFailure;
}

}  // namespace reprise
