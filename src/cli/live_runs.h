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
#include "cli/suite_checks.h"
#include "cli/suite_report.h"
#include "engine/elastic_pool.h"
#include "engine/live_turn.h"
#include "terminal/progress.h"

namespace reprise {

// A turn for the model, and where its outcome goes.
struct LiveTest {
  LiveTurn turn;
  TurnResult& result;
  std::size_t number = 1;  // of the turn on its branch
};

// Runs recorded turns with the model, several at the same time, and judges each run by the turn's checks. Without
// checks a run passes if it makes the calls of the record and ends with an answer.
//
//   LiveRuns live(line.live, counter, progress);
//   live.Test(tests, checks, content_of);
//   Warn(live.Spent());
class LiveRuns {
 public:
  // `counter` ends the runs, and counts them. All arguments must outlive this.
  LiveRuns(const LiveRequest& wanted, WorkCounter& counter, Progress& progress);

  // kInvalidArgument if there is a limit for the cost, and the model has no price.
  Result<void> CheckPrice(const LiveTurn& turn) const;
  // Adds problems and notes to the results, and the time of the runs.
  void Test(std::span<const LiveTest> tests, std::span<const SuiteChecks> checks, const ContentOf& content_of);
  // Makes `runs` runs, and counts those that pass. Fails if one of them could not be made to its end: kCancelled (a
  // stop), kForbidden (the limit for the cost), kUnavailable (the model's error).
  Result<std::size_t> CountPassed(const LiveTest& test, std::span<const SuiteChecks> checks,
                                  const ContentOf& content_of, std::size_t runs);
  // For people: "6 requests, 8,120 input and 240 output tokens, cost 0.0123".
  std::string Spent();
  std::uint64_t requests() const { return requests_; }
  double Cost();
  TokenUsage Used();

 private:
  struct Outcome;
  struct Judging;

  std::vector<Outcome> RunAll(std::span<const LiveTest> tests, std::span<const Judging> judging, std::size_t runs);
  Outcome Run(const LiveTest& test, const Judging& judging);
  LiveRun Ask(const LiveTurn& turn);
  void Judge(const LiveTurn& turn, const JudgeCheck& check, const std::string& answer, Outcome& outcome);
  void Report(const LiveTest& test, const Judging& judging, std::span<const Outcome> outcomes) const;

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

// "3 of 5 runs passed (95 % interval 23-88 %)": where the share of all possible runs lies, according to Wilson.
std::string PassedText(std::size_t passed, std::size_t runs);

}  // namespace reprise
