#include "cli/bisect_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "base/try.h"

namespace reprise {
namespace {

using Places = std::vector<std::size_t>;

constexpr std::size_t kMostRuns = 10;  // of a test, for each run that an outcome must lead by

Places Both(Places some, const Places& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

class Search {
 public:
  Search(std::size_t differences, const BisectOptions& options, const CountPassed& run)
      : differences_(differences), options_(options), run_(run) {
    // With the tests by halves, of both ends and of the result.
    const double tests = static_cast<double>(std::bit_width(differences - 1)) + 3;
    const double step = std::log(options.right / (1 - options.right));  // what a run adds to the log-likelihood ratio
    const double error = options.error / tests;
    lead_ = static_cast<std::size_t>(std::max(1.0, std::ceil(std::log((1 - error) / error) / step - 1e-9)));
    error_ = 1 / (1 + std::exp(step * static_cast<double>(lead_)));
  }

  Result<Bisection> Run() {
    auto found = Find();
    return is_undecided_ ? End(Bisection::End::kUndecided) : found;
  }

 private:
  Result<Bisection> Find() {
    Places all(differences_);
    for (std::size_t i = 0; i < differences_; ++i) all[i] = i;
    if (!TRY(Test({})).passes) return End(Bisection::End::kRecordedFails);
    if (TRY(Test(all)).passes) return End(Bisection::End::kCurrentPasses);
    found_.causes = all;
    while (found_.causes.size() > 1) {
      const auto middle = found_.causes.begin() + static_cast<std::ptrdiff_t>(found_.causes.size() / 2);
      const Places first(found_.causes.begin(), middle), second(middle, found_.causes.end());
      found_.causes = TRY(Test(first)).passes ? second : first;
    }
    if (!TRY(Test(found_.causes)).passes) return End(Bisection::End::kFound);
    found_.causes = TRY(Explain({}, false, all));
    std::ranges::sort(found_.causes);
    const bool is_cause = !found_.causes.empty() && !TRY(Test(found_.causes)).passes;
    return End(is_cause ? Bisection::End::kFound : Bisection::End::kContradictory);
  }

  Result<Bisection> End(Bisection::End end) {
    found_.end = end;
    if (end != Bisection::End::kFound) found_.causes.clear();
    found_.error = is_undecided_ ? 1 : std::min(1.0, error_ * static_cast<double>(found_.tests));
    return found_;
  }

  // Runs until one outcome leads by `lead_` runs, which is where the ratio of both likelihoods reaches its bound. An
  // outcome that is as often this as that never leads, so the runs have a limit: a test that decides seldom comes near.
  Result<Tested> Test(const Places& current) {
    std::vector<bool> is_current(differences_);
    for (const std::size_t each : current) is_current[each] = true;
    const auto known = tested_.find(is_current);
    if (known != tested_.end()) return known->second;
    Tested tested;
    const auto lead = [&] {
      const std::size_t failed = tested.runs - tested.passed;
      return std::max(tested.passed, failed) - std::min(tested.passed, failed);
    };
    const std::size_t most = kMostRuns * lead_;
    while (lead() < lead_ && tested.runs < most) {
      const std::size_t runs = std::clamp<std::size_t>(lead_ - lead(), 1, std::max<std::size_t>(options_.together, 1));
      tested.passed += TRY(run_(is_current, runs));
      tested.runs += runs;
    }
    tested.passes = tested.passed * 2 > tested.runs;
    ++found_.tests;
    found_.runs += tested.runs;
    if (current.empty()) found_.recorded = tested;
    if (current.size() == differences_) found_.current = tested;
    is_undecided_ = lead() < lead_;
    if (is_undecided_) return Fail(ErrorCode::kUnavailable, "an outcome cannot be decided");
    return tested_.emplace(std::move(is_current), tested).first->second;
  }

  // A smallest part of `rest` that changes the outcome together with `known`. `is_new`: `known` has grown.
  Result<Places> Explain(const Places& known, bool is_new, const Places& rest) {
    if (is_new && !TRY(Test(known)).passes) return Places();
    if (rest.size() <= 1) return rest;
    const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2);
    const Places first(rest.begin(), middle), second(middle, rest.end());
    const Places of_second = TRY(Explain(Both(known, first), true, second));
    const Places of_first = TRY(Explain(Both(known, of_second), !of_second.empty(), first));
    return Both(of_first, of_second);
  }

  const std::size_t differences_;
  const BisectOptions& options_;
  const CountPassed& run_;
  std::size_t lead_ = 1;
  double error_ = 0;           // of a test
  bool is_undecided_ = false;  // which ends the search
  std::map<std::vector<bool>, Tested> tested_;
  Bisection found_;
};

}  // namespace

Result<Bisection> Bisect(std::size_t differences, const BisectOptions& options, const CountPassed& run) {
  return Search(differences, options, run).Run();
}

}  // namespace reprise
