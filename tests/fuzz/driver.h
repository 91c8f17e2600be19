#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// A small fuzzer: changes seeds at random, deterministically from one number, and hands them to a target until the time
// is over. What a target must not do is to crash, to hang, to use more memory than Limits says, or to call Broken. The
// compiler is the one that builds everything else; what libFuzzer would add is guidance by coverage, what it would cost
// is a second build of everything with clang.
//
//   fuzz_NAME [SECONDS] [SEED]     at random
//   fuzz_NAME FILE...              these inputs once: what a failure has left behind
namespace reprise::fuzz {

struct Target {
  std::string name;
  std::vector<std::string> seeds;  // what is valid, or nearly so
  std::vector<std::string> words;  // what means something in the middle of an input
  std::function<void(std::string_view input)> run;
};

struct Limits {
  static constexpr std::size_t kInputBytes = 1 << 20;
  static constexpr unsigned kSecondsPerInput = 60;
};

int Main(int argc, char** argv, const Target& target);

// Says what is wrong with the current input, and ends the program.
[[noreturn]] void Broken(std::string_view what);
inline void Expect(bool holds, std::string_view what) {
  if (!holds) Broken(what);
}

// Cuts an input into pieces as a network might: at places that depend on it alone.
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
