#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/present_folders.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/queues.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/bisect_search.h"
#include "cli/commands.h"
#include "cli/live_runs.h"
#include "cli/recorded_chats.h"
#include "cli/suite_checks.h"
#include "domain/codec.h"
#include "engine/drift.h"
#include "engine/elastic_pool.h"
#include "engine/live_turn.h"
#include "engine/mixed_input.h"
#include "engine/recording.h"
#include "engine/request_body.h"
#include "net/curl_transport.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

// Changes each body on its way to the provider. A failure is that of the request, which is not sent.
class ChangingTransport final : public Transport {
 public:
  using Change = std::function<Result<std::string>(const std::string& body)>;  // called from any thread
  explicit ChangingTransport(Transport& next) : next_(next) {}
  void Use(Change change) { change_ = std::move(change); }  // while nothing is sent
  void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) override {
    if (!request.body.empty()) {
      auto changed = change_(request.body);
      if (!changed) return done(Fail(std::move(changed.error())));
      request.body = *std::move(changed);
    }
    next_.Send(std::move(request), handler, std::move(stop), std::move(done));
  }

 private:
  Transport& next_;
  Change change_;
};

// The recorded turn, of a stored chat or an exported one.
class Recorded {
 public:
  Recorded(const CommandLine& line, const Environment& environment, const RecordedChat& chat)
      : line_(line), environment_(environment), chat_(chat), bodies_(*chat.bodies) {}

  Result<void> Load() {
    turn_ = TRY(bodies_.store().LoadInteraction(chat_.chat, *chat_.only));
    TRY(CheckReplayable(*turn_));
    const auto& record = turn_->record;
    if (!record || !record->requests) {
      return Fail(Reason::kNotReplayable, kRequestsNotOnRecord);
    }
    present_ = TRY(PresentFolders::Open(TRY(LoadOptions(line_.flags, environment_)), nullptr, &transport_));
    for (std::size_t i = 0; i < record->requests->size() && body_.empty(); ++i) {
      if ((*record->requests)[i].purpose == SentRequest::Purpose::kTurn) body_ = TRY(bodies_.Of(*turn_, i));
    }
    if (body_.empty()) return Fail(Reason::kNotReplayable, "no request to a model is on record for this turn");
    return {};
  }

  // The turn, with its input changed on the way.
  Result<LiveTurn> With(ChangingTransport::Change change) {
    transport_.Use(std::move(change));
    const auto model = line_.flags.find("model");
    return PrepareLive(*turn_, bodies_, TRY(AgentFor(*present_, chat_, *turn_)),
                       model == line_.flags.end() ? std::string() : model->second);
  }

  // The differences between both inputs. `now`: the first request of today.
  Result<MixedInput> Compare(const Executor& executor, std::string& now) {
    const LiveTurn caught = TRY(With([&now](const std::string& body) -> Result<std::string> {
      if (now.empty()) now = body;
      return Fail(ErrorCode::kUnavailable, "this request is not sent");
    }));
    const auto provider = [](const std::string& model) { return model.substr(0, model.find('/')); };
    const std::string& model = caught.model.full_name;
    if (provider(model) != provider(turn_->model)) {
      return Fail(ErrorCode::kInvalidArgument, "the turn was recorded with " + turn_->model + ", and " + model +
                                                   " is of another provider; choose one of the same with --model");
    }
    const LiveRun run = RunLive(caught, {}, {}, executor);
    if (now.empty()) {
      return Fail(ErrorCode::kInvalidArgument,
                  model + " sends no requests" + (run.interaction.error ? ": " + run.interaction.error->message : ""));
    }
    const auto drift = TRY(FindDrift(*turn_, bodies_, TRY(AgentFor(*present_, chat_, *turn_)), executor));
    return MixedInput::Of(body_, now, drift.found);
  }

 private:
  const CommandLine& line_;
  const Environment& environment_;
  const RecordedChat& chat_;
  RequestBodies& bodies_;
  CurlTransport curl_;
  ChangingTransport transport_{curl_};
  std::unique_ptr<PresentFolders> present_;
  std::optional<Interaction> turn_;
  std::string body_;
};

// Whether a text that names no file was meant to: it ends as one of checks does, or its folder is there.
bool IsMeantAsFile(const std::string& check) {
  const std::size_t slash = check.rfind('/'), dot = check.rfind('.');
  if (slash != check.npos && slash > 0 && IsDirectory(check.substr(0, slash))) return true;
  if (dot == check.npos || dot == 0 || check[dot - 1] == '\\') return false;
  static constexpr std::string_view kEndings[] = {".json", ".jsn", ".jsonc", ".json5"};
  return std::ranges::find(kEndings, std::string_view(check).substr(dot)) != std::end(kEndings);
}

// A file of checks, or a pattern for the answer.
Result<std::vector<SuiteChecks>> ChecksIn(const std::string& check) {
  std::vector<SuiteChecks> checks;
  if (check.empty()) return checks;
  if (IsFile(check)) {
    checks.push_back(TRY(ParseChecks(TRY(ReadSmall(check)).value_or(""), check)));
  } else if (IsMeantAsFile(check)) {
    return Fail(ErrorCode::kInvalidArgument, "there is no file " + check + "; the pattern would be (?:" + check + ")");
  } else {
    checks.push_back(TRY(ParseChecks(DumpJson(Json{{"answer", {{"matches", check}}}}), "--check")));
  }
  return checks;
}

// Fails if a file of checks is not for this turn, because then its runs would say nothing.
Result<void> CheckUse(const std::string& check, std::span<const SuiteChecks> checks, const RecordedChat& chat,
                      std::size_t number) {
  if (checks.empty()) return {};
  for (const std::string& turn : UnknownTurns(checks.front(), chat.turns)) {
    return Fail(ErrorCode::kInvalidArgument, check + ": /turns/" + turn + ": the chat has no such turn");
  }
  if (LiveChecksOf(checks, *chat.only, number).any) return {};
  return Fail(ErrorCode::kInvalidArgument, check + ": there is no check for " + chat.only->str());
}

struct Report {
  std::string turn;
  std::vector<Drift> differences;
  std::string left_over;  // where the recorded input cannot be put back; empty: nowhere
  Bisection found;
  std::string problem{};  // of the first run with the recorded input that did not pass
};

std::string_view NameOf(Bisection::End end) {
  switch (end) {
    case Bisection::End::kFound:
      return "found";
    case Bisection::End::kRecordedFails:
      return "recorded_fails";
    case Bisection::End::kCurrentPasses:
      return "current_passes";
    case Bisection::End::kContradictory:
      return "contradictory";
    case Bisection::End::kUndecided:
      return "undecided";
  }
  return "";
}

std::string EndText(Bisection::End end) {
  switch (end) {
    case Bisection::End::kFound:
      return "the difference that changes the outcome:";
    case Bisection::End::kRecordedFails:
      return "runs with the recorded input do not pass, so no difference can be blamed; is the check right?";
    case Bisection::End::kCurrentPasses:
      return "runs with today's input pass too, so no difference changes the outcome";
    case Bisection::End::kContradictory:
      return "the runs contradict each other: the same input passes too often and fails too often to tell";
    case Bisection::End::kUndecided:
      return "the outcome cannot be decided: runs with the same input pass about as often as they fail; a stricter "
             "check may help";
  }
  return "";
}

void PrintJson(const Report& report, LiveRuns& live) {
  const Bisection& found = report.found;
  Json causes = Json::array();
  for (const std::size_t each : found.causes) {
    causes.push_back(ToJson(report.differences[each]));
    causes.back().erase("request");
  }
  const auto tested = [](const Tested& each) { return Json{{"passed", each.passed}, {"runs", each.runs}}; };
  const TokenUsage used = live.Used();
  PrintDocument({{"turn", report.turn},
                 {"result", report.differences.empty() ? "nothing_differs" : NameOf(found.end)},
                 {"differences", report.differences.size()},
                 {"causes", std::move(causes)},
                 {"not_restored", report.left_over.empty() ? Json() : Json(report.left_over)},
                 {"recorded", tested(found.recorded)},
                 {"problem", report.problem.empty() ? Json() : Json(report.problem)},
                 {"current", tested(found.current)},
                 {"tests", found.tests},
                 {"runs", found.runs},
                 {"error", found.error},
                 {"requests", live.requests()},
                 {"input_tokens", used.input_tokens},
                 {"output_tokens", used.output_tokens},
                 {"cost", live.Cost()}});
}

void PrintForReading(const Report& report, LiveRuns& live) {
  const Bisection& found = report.found;
  Print(Counted(report.differences.size(), "difference") + " between the recorded input of " + report.turn +
        " and today's\n");
  if (!report.left_over.empty()) {
    Print("not restored: what differs at " + VisibleLine(report.left_over) + " is as it is today in all runs\n");
  }
  if (report.differences.empty()) return Print("so there is nothing to bisect\n");
  const auto row = [](const char* what, const Tested& tested) {
    if (tested.runs > 0) Print(std::string(what) + PassedText(tested.passed, tested.runs) + "\n");
  };
  row("recorded input: ", found.recorded);
  row("today's input: ", found.current);
  const bool is_joint = found.causes.size() > 1;
  Print((is_joint ? "the differences that change the outcome together:" : EndText(found.end)) + "\n");
  if (!report.problem.empty()) Print("the first that does not: " + VisibleLine(report.problem) + "\n");
  for (const std::size_t each : found.causes) Print(Describe(report.differences[each]) + "\n");
  char sure[32];
  std::snprintf(sure, sizeof sure, "%.1f", std::floor((1 - found.error) * 1000) / 10);
  const std::string sureness =
      std::string(", sure to ") + sure + " % if inputs have their usual outcome in four of five runs";
  Print(live.Spent() + "; " + Counted(found.runs, "run") + (found.error < 1 ? sureness : "") + "\n");
}

class Bisecting final : public RecordedChatTaker {
 public:
  Bisecting(const CommandLine& line, const Environment& environment, std::span<const SuiteChecks> checks,
            LiveRuns& live, Progress& progress)
      : line_(line), environment_(environment), checks_(checks), live_(live), progress_(progress) {}

  // One turn, and the first one if several are given.
  Result<void> Take(const RecordedChat& chat) override {
    if (!chat.only) return Fail(ErrorCode::kInvalidArgument, "bisect takes one turn: " + chat.name + "/INTERACTION");
    status_ = Find(chat);
    return {};
  }
  void TakeBroken(const std::string& /*name*/, const std::string& file, const Error& why) override {
    Warn(VisibleLine(file) + ": " + VisibleLine(why.message));
  }
  const Exited& status() const { return status_; }

 private:
  Exited Find(const RecordedChat& chat);

  const CommandLine& line_;
  const Environment& environment_;
  const std::span<const SuiteChecks> checks_;
  LiveRuns& live_;
  Progress& progress_;
  Exited status_ = kExitFailure;
};

Exited Bisecting::Find(const RecordedChat& chat) {
  const auto at = std::ranges::find(chat.turns, *chat.only);
  const std::size_t number = static_cast<std::size_t>(at - chat.turns.begin()) + 1;
  TRY(OfUse(CheckUse(line_.check, checks_, chat, number)));
  Recorded recorded(line_, environment_, chat);
  TRY(recorded.Load());
  ElasticPool pool;
  const Executor executor = [&pool](std::function<void()> job) { pool.Submit(std::move(job)); };
  std::string now;
  const MixedInput input = TRY(recorded.Compare(executor, now));
  Report report{.turn = chat.name + "/" + chat.only->str(),
                .differences = input.differences(),
                .left_over = input.left_over(),
                .found = {}};
  const std::size_t count = report.differences.size();
  if (count > 0) {
    progress_.Begin({.doing = "asking", .things = "runs"});
    const std::vector<bool>* chosen = nullptr;  // of the test under way
    LiveTurn turn = TRY(recorded.With([&](const std::string& body) { return input.Mix(body, *chosen); }));
    TRY(OfUse(live_.CheckPrice(turn)));
    TRY(OfUse(live_.CheckJudges(turn, checks_, number)));
    const LiveTest test{.turn = std::move(turn),
                        .number = number,
                        .grader = GraderFor(IsFile(line_.check) ? line_.check : std::string())};
    const auto found = Bisect(count, {.together = static_cast<std::size_t>(line_.live.jobs)},
                              [&](const std::vector<bool>& is_current, std::size_t runs) {
                                chosen = &is_current;
                                const bool is_recorded = std::ranges::find(is_current, true) == is_current.end();
                                return live_.CountPassed(test, checks_, chat.content_of, runs,
                                                         is_recorded ? &report.problem : nullptr);
                              });
    if (!found) {
      Complain(found.error());
      Warn("nothing was found with " + live_.Spent());
      return found.error().code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
    }
    report.found = *found;
    if (found->end != Bisection::End::kRecordedFails) report.problem.clear();
  }
  progress_.End();
  line_.json ? PrintJson(report, live_) : PrintForReading(report, live_);
  return report.found.causes.empty() ? kExitFailure : kExitOk;
}

}  // namespace

Exited RunBisect(const CommandLine& line, const Environment& environment) {
  SetLogLevel(LogLevel::kError);  // failures of the recorded runs are not news
  const auto checks = TRY(OfUse(ChecksIn(line.check)));
  WorkCounter counter;
  Progress progress(counter, environment);  // before any thread, because it takes the signals
  LiveRuns live(line.live, counter, progress);
  Bisecting bisecting(line, environment, checks, live, progress);
  RecordedChats chats(line.flags, environment);
  if (!TRY(OfUse(chats.Take(line.argument, bisecting)))) {
    return Misused("bisect takes a turn of a stored or exported chat: CHAT/INTERACTION; " + VisibleLine(line.argument) +
                   " is none");
  }
  progress.End();
  return bisecting.status();
}

}  // namespace reprise
