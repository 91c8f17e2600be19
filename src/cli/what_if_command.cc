#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/present_folders.h"
#include "app/prompt_files.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/keep_what_if.h"
#include "cli/live_runs.h"
#include "cli/new_rules.h"
#include "cli/recorded_chats.h"
#include "cli/what_if_report.h"
#include "engine/recording.h"
#include "engine/what_if.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

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
