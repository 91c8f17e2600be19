#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reprise {

// How much to test. `scripts/torture` sets REPRISE_TORTURE_MINUTES and REPRISE_TORTURE_SEED; without them the tests fit
// into a run of the whole suite.
struct Torture {
  static const Torture& Get();

  bool is_long = false;
  std::uint32_t seed = 4711;
  // The factor by which sanitizer builds check fewer states and flips.
  unsigned fraction = 1;
};

// Hides the product's log while it lives, because the tests cause thousands of failures.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int stderr_;
};

// Prints a figure in addition to the test framework's output.
void Report(const std::string& line);

}  // namespace reprise
