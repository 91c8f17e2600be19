#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reprise {

// How hard to try. `scripts/torture` sets REPRISE_TORTURE_MINUTES and REPRISE_TORTURE_SEED; without them the tests fit
// into a run of the whole suite.
struct Torture {
  static const Torture& Get();

  bool is_long = false;
  std::uint32_t seed = 4711;
  // By how much fewer states and flips a sanitizer's build looks at.
  unsigned fraction = 1;
};

// Nothing that the product logs is shown as long as this lives: the tests make it fail thousands of times.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int stderr_;
};

// Prints a figure, beside what the test framework prints.
void Report(const std::string& line);

}  // namespace reprise
