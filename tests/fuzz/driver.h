#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// A small fuzzer: changes seeds at random, reproducibly from one number, and gives them to a target until the time is
// over. A target fails if it crashes, hangs, uses more memory than Limits allows, or calls Broken. It is built by the
// usual compiler; libFuzzer would add guidance by coverage, but cost a second build of everything with clang.
//
//   fuzz_NAME [SECONDS] [SEED]     at random
//   fuzz_NAME FILE...              these inputs once, such as one that a failure has left
namespace reprise::fuzz {

struct Target {
  std::string name;
  std::vector<std::string> seeds;  // valid inputs, or nearly so
  std::vector<std::string> words;  // texts that mean something within an input
  std::function<void(std::string_view input)> run;
};

struct Limits {
  static constexpr std::size_t kInputBytes = 1 << 20;
  static constexpr unsigned kSecondsPerInput = 60;
};

int Main(int argc, char** argv, const Target& target);

// Reports the fault with the current input and ends the program.
[[noreturn]] void Broken(std::string_view what);
inline void Expect(bool holds, std::string_view what) {
  if (!holds) Broken(what);
}

// Cuts an input into pieces like a network, at places that depend only on the input.
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
