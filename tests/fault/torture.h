#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reprise {

// How long the tests run. `scripts/torture` sets REPRISE_TORTURE_MINUTES and REPRISE_TORTURE_SEED; without them the
// tests are short enough for the whole suite.
struct Torture {
  static const Torture& Get();

  bool is_long = false;
  std::uint32_t seed = 4711;
  // The divisor for the number of states and flips, larger under a sanitizer.
  unsigned fraction = 1;
};

// Hides the product's log while it lives, because the tests make the product fail thousands of times.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int stderr_;
};

// Prints a figure beside the output of the test framework.
void Report(const std::string& line);

}  // namespace reprise
