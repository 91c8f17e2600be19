#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// A small fuzzer: changes seeds at random, reproducibly from one number, and runs a target on them until the time is
// over. A target must not crash, hang, use more memory than Limits allows, or call Broken. libFuzzer would add guidance
// by coverage, but would need a second build of everything with clang.
//
//   fuzz_NAME [SECONDS] [SEED]     at random
//   fuzz_NAME FILE...              these inputs once, such as one left by a failure
namespace reprise::fuzz {

struct Target {
  std::string name;
  std::vector<std::string> seeds;  // valid or nearly valid inputs
  std::vector<std::string> words;  // pieces with a meaning in the middle of an input
  std::function<void(std::string_view input)> run;
};

struct Limits {
  static constexpr std::size_t kInputBytes = 1 << 20;
  static constexpr unsigned kSecondsPerInput = 60;
};

int Main(int argc, char** argv, const Target& target);

// Reports what is wrong with the current input, and ends the program.
[[noreturn]] void Broken(std::string_view what);
inline void Expect(bool holds, std::string_view what) {
  if (!holds) Broken(what);
}

// Cuts an input into pieces, as a network might, at places that depend only on the input.
class Cutter {
 public:
  explicit Cutter(std::string_view input) : rest_(input), state_(std::hash<std::string_view>()(input) | 1) {}
  bool done() const { return rest_.empty(); }
  std::string_view Next();

 private:
  std::string_view rest_;
  std::uint64_t state_;
};

}  // namespace reprise::fuzz
