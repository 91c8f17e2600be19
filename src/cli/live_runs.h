#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/queues.h"
#include "cli/command_line.h"
#include "cli/grader.h"
#include "cli/suite_checks.h"
#include "cli/suite_report.h"
#include "engine/elastic_pool.h"
#include "engine/live_turn.h"
#include "terminal/progress.h"

namespace reprise {

// A turn for the model.
struct LiveTest {
  LiveTurn turn;
  std::size_t number = 1;                    // of the turn on its branch
  FilesThen files_then{};                    // LiveOptions::files_then
  std::vector<std::string> allow_effects{};  // likewise
  bool is_free = false;                      // without checks, other calls than those of the record pass too
  std::shared_ptr<const Grader> grader{};    // for `command` checks; null: there is none
};

// A run of it, judged by the turn's checks. It passed if it was made and has no problems.
struct JudgedRun {
  LiveRun run;              // without its final state and its copy of the workspace
  bool was_made = false;    // to its end
  bool is_checked = false;  // there were checks
  std::string problem{};    // all of them
  std::vector<std::string> notes{};
  double ms = 0, cost = 0;
  std::vector<WorkspaceChange> files{};  // that it has changed
  std::string diff{};                    // of them
  bool passed() const { return was_made && problem.empty(); }
};

// Runs recorded turns with the model, several at the same time, and judges each run by the turn's checks. Without
// checks a run passes if it makes the calls of the record and ends with an answer.
//
//   LiveRuns live(line.live, counter, progress);
//   const auto runs = live.Make(tests, checks, content_of);
//   for (std::size_t i = 0; i < tests.size(); ++i) live.Report(tests[i], checks, runs[i], results[i]);
//   Warn(live.Spent());
class LiveRuns {
 public:
  // `counter` ends the runs, and counts them. All arguments must outlive this.
  LiveRuns(const LiveRequest& wanted, WorkCounter& counter, Progress& progress);

  // kInvalidArgument if there is a limit for the cost, and the model has no price.
  Result<void> CheckPrice(const LiveTurn& turn) const;
  // The same for the judges of the turn, and kInvalidArgument (reason "unknown_model") if there is no such model.
  Result<void> CheckJudges(const LiveTurn& turn, std::span<const SuiteChecks> checks, std::size_t number) const;
  // The runs of each test.
  std::vector<std::vector<JudgedRun>> Make(std::span<const LiveTest> tests, std::span<const SuiteChecks> checks,
                                           const ContentOf& content_of);
  // Adds the runs' problems, notes and time to the result.
  static void Report(const LiveTest& test, std::span<const SuiteChecks> checks, std::span<const JudgedRun> runs,
                     TurnResult& result);
  // Makes `runs` runs, and counts those that pass. Fails if one of them could not be made to its end: kCancelled (a
  // stop), kForbidden (the limit for the cost), kUnavailable (the model's error). `problem`: takes that of the first
  // run that does not pass, unless it has one; may be null.
  Result<std::size_t> CountPassed(const LiveTest& test, std::span<const SuiteChecks> checks,
                                  const ContentOf& content_of, std::size_t runs, std::string* problem);
  // For people: "6 requests, 8,120 input and 240 output tokens, cost 0.0123".
  std::string Spent();
  std::uint64_t requests() const { return requests_; }
  double Cost();
  TokenUsage Used();

 private:
  struct Judging;

  std::vector<std::vector<JudgedRun>> MakeEach(std::span<const LiveTest> tests, std::span<const SuiteChecks> checks,
                                               const ContentOf& content_of, std::size_t runs);
  JudgedRun Run(const LiveTest& test, const Judging& judging);
  LiveRun Ask(const LiveTurn& turn, const LiveTest* test, double& cost);
  void RunTheChecks(const LiveTest& test, const Judging& judging, JudgedRun& judged);
  void Judge(const LiveTurn& turn, const JudgeCheck& check, JudgedRun& judged);

  const LiveRequest& wanted_;
  WorkCounter& counter_;
  Progress& progress_;
  Timer timer_;
  ElasticPool pool_;
  std::atomic<std::uint64_t> requests_ = 0;
  Mutex mutex_;
  TokenUsage used_ GUARDED_BY(mutex_);
  double cost_ GUARDED_BY(mutex_) = 0;
};

// Its answer; empty: none.
std::string AnswerIn(const Interaction& interaction);
// The calls that its events show: "read_file {...}".
std::vector<std::string> CallsIn(const Interaction& interaction);
// Both, for a report.
TurnSide SideOf(const std::string& title, const Interaction& interaction);

// "3 of 5 runs passed (95 % interval 23-88 %)": where the share of all possible runs lies, according to Wilson.
std::string PassedText(std::size_t passed, std::size_t runs);

}  // namespace reprise
