#include "fuzz/driver.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "base/logging.h"

#if defined(__SANITIZE_ADDRESS__)
// Limits memory, because an input of a mebibyte must not cost much more, neither at once nor in total.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=96:hard_rss_limit_mb=1500:quarantine_size_mb=64:detect_stack_use_after_return=1:abort_"
         "on_error=0";
}
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
#endif

namespace reprise::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

// Keeps the current input in a file, so that it is there however the program ends.
class CurrentInput {
 public:
  explicit CurrentInput(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    if (fd_ < 0) std::perror(path_.c_str());
  }
  ~CurrentInput() {
    ::close(fd_);
    ::unlink(path_.c_str());  // no failure
  }
  void Keep(std::string_view input) {
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, input.data(), input.size(), 0) < 0) std::perror(path_.c_str());
  }

 private:
  const std::string path_;
  const int fd_;
};

class Mutator {
 public:
  Mutator(const Target& target, std::uint64_t seed) : target_(target), random_(seed), pool_(target.seeds) {}

  std::string Next() {
    std::string input = pool_[Below(pool_.size())];
    const std::size_t changes = 1 + Below(Below(8) == 0 ? 60 : 6);
    for (std::size_t i = 0; i < changes; ++i) Change(input);
    if (input.size() > Limits::kInputBytes) input.resize(Limits::kInputBytes);
    // Some results are changed further. They replace each other, but never the seeds.
    if (Below(20) == 0 && input.size() < 64 * 1024) {
      if (pool_.size() < target_.seeds.size() + 200) {
        pool_.push_back(input);
      } else {
        pool_[target_.seeds.size() + Below(200)] = input;
      }
    }
    return input;
  }

 private:
  std::size_t Below(std::size_t limit) { return limit == 0 ? 0 : static_cast<std::size_t>(random_() % limit); }
  // The begin and length of a random part of the input.
  std::pair<std::size_t, std::size_t> Part(const std::string& input) {
    const std::size_t begin = Below(input.size() + 1);
    return {begin, std::min(input.size() - begin, Below(Below(4) == 0 ? 4096 : 32))};
  }
  std::string RandomBytes() {
    std::string bytes(1 + Below(8), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  std::string Number() {
    static const std::array<const char*, 14> kNumbers = {"0",
                                                         "-1",
                                                         "1e999",
                                                         "-0",
                                                         "4294967296",
                                                         "18446744073709551615",
                                                         "18446744073709551616",
                                                         "9223372036854775807",
                                                         "-9223372036854775809",
                                                         "0.1",
                                                         "1e-400",
                                                         "2147483648",
                                                         "00",
                                                         "1048577"};
    return kNumbers[Below(kNumbers.size())];
  }

  void Change(std::string& input) {
    const auto [begin, length] = Part(input);
    switch (Below(11)) {
      case 0:
        if (!input.empty()) input[Below(input.size())] ^= static_cast<char>(1 << Below(8));
        break;
      case 1:
        if (!input.empty()) input[Below(input.size())] = static_cast<char>(random_());
        break;
      case 2:
        input.erase(begin, length);
        break;
      case 3:
        input.insert(Below(input.size() + 1), RandomBytes());
        break;
      case 4:
      case 5:
        if (!target_.words.empty()) input.replace(begin, Below(2) * length, target_.words[Below(target_.words.size())]);
        break;
      case 6:
        input.insert(Below(input.size() + 1), input.substr(begin, length));
        break;
      case 7: {  // inserts a piece of another input
        const std::string& other = pool_[Below(pool_.size())];
        const std::size_t at = Below(other.size() + 1);
        input.replace(begin, length, other, at, Below(other.size() - at + 1));
        break;
      }
      case 8:
        input.replace(begin, length, Number());
        break;
      case 9:
        input.resize(begin);
        break;
      case 10: {  // repeats a part, for depth, length and number
        if (Below(10) != 0) break;
        const std::string piece = input.substr(begin, std::max<std::size_t>(length, 1));
        std::string many;
        const std::size_t times = 1 + Below(std::size_t{1} << Below(18));
        while (many.size() < times * piece.size() && many.size() < Limits::kInputBytes && !piece.empty()) many += piece;
        input.insert(begin, many);
        break;
      }
      default:
        break;
    }
  }

  const Target& target_;
  std::mt19937_64 random_;
  std::vector<std::string> pool_;
};

int RunFiles(int argc, char** argv, const Target& target) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return 2;
    }
    const std::string input((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    target.run(input);
    std::printf("%s: %s is taken without a fault\n", target.name.c_str(), argv[i]);
  }
  return 0;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

void Broken(std::string_view what) {
  std::fprintf(stderr, "BROKEN: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

std::string_view Cutter::Next() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  const std::size_t size = (state_ & 7) == 0 ? 1 + state_ % 4096 : 1 + state_ % 40;
  const std::string_view piece = rest_.substr(0, size);
  rest_.remove_prefix(piece.size());
  return piece;
}

int Main(int argc, char** argv, const Target& target) {
  SetLogLevel(LogLevel::kError);
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit memory{.rlim_cur = rlim_t{3} << 30, .rlim_max = rlim_t{3} << 30};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  if (argc > 1 && !IsNumber(argv[1])) return RunFiles(argc, argv, target);
  const auto seconds = std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 60);
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device()();
  const std::string file = "fuzz_" + target.name + "." + std::to_string(seed) + ".input";
  std::printf("fuzz_%s: seed %llu; if it ends early, the input is in %s\n", target.name.c_str(),
              static_cast<unsigned long long>(seed), file.c_str());
  std::fflush(stdout);
  CurrentInput current(file);
  Mutator mutator(target, seed);
  std::uint64_t runs = 0, bytes = 0;
  const auto run = [&](const std::string& input) {
    current.Keep(input);
    ::alarm(Limits::kSecondsPerInput);
    target.run(input);
    ++runs;
    bytes += input.size();
  };
  for (const std::string& each : target.seeds) run(each);
  for (const auto end = Clock::now() + seconds; Clock::now() < end;) run(mutator.Next());
  ::alarm(0);
  std::printf("fuzz_%s: %llu inputs, %llu MB, nothing found\n", target.name.c_str(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(bytes >> 20));
  return 0;
}

}  // namespace reprise::fuzz
