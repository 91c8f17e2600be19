#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "reprise/result.h"

// Finds the differences that change an outcome which may be noisy.
namespace reprise {

// Makes `runs` runs with the differences that are current, and counts those that pass. A failure ends the search.
using CountPassed = std::function<Result<std::size_t>(const std::vector<bool>& is_current, std::size_t runs)>;

struct BisectOptions {
  double right = 0.8;        // the share of runs with the usual outcome, at least; above 1/2
  double error = 0.05;       // the most that the result may be wrong with
  std::size_t together = 1;  // runs at the same time
};

// What runs with the same differences showed.
struct Tested {
  bool passes = false;
  std::size_t passed = 0, runs = 0;
};

struct Bisection {
  enum class End {
    kFound,
    kRecordedFails,  // runs with the recorded input do not pass
    kCurrentPasses,  // runs with the current input pass
    kContradictory,  // the runs do not point to any differences: the outcome is noisier than `right`
    kUndecided,      // runs with the same differences pass about as often as they fail
  };
  End end = End::kFound;
  std::vector<std::size_t> causes{};  // together they change the outcome, and no part of them does
  Tested recorded{}, current{};
  std::size_t tests = 0, runs = 0;
  double error = 0;  // the most that the result is wrong with, if `right` holds
};

// Each set of differences is run until a sequential probability ratio test (Wald) decides whether it passes. A single
// cause is found by halves. If the half that is left does not change the outcome alone, several differences do so
// together: then QuickXplain (Junker) finds a smallest set. REQUIRES: `differences` > 0.
//
//   const auto found = Bisect(64, {.together = 4}, run);
//   if (found && found->end == Bisection::End::kFound) Show(found->causes);
Result<Bisection> Bisect(std::size_t differences, const BisectOptions& options, const CountPassed& run);

}  // namespace reprise
