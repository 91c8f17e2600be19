#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "base/logging.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::test::log_output_test {
namespace {

using namespace std::chrono_literals;

std::string MissingLine(std::uint64_t lines) { return "missing " + std::to_string(lines) + "\n"; }

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  // All that is there now.
  std::string Drain() const {
    std::string all;
    REQUIRE(::fcntl(reader.get(), F_SETFL, O_NONBLOCK) == 0);
    char buffer[4096];
    for (ssize_t got; (got = ::read(reader.get(), buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }
  UniqueFd reader, writer;
};

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

std::string RefusalOf(const std::string& path) {
  const auto file = OpenLogFile(path);
  REQUIRE_FALSE(file);
  CHECK(file.error().message.find(path) != std::string::npos);
  return file.error().message;
}

}  // namespace

TEST_CASE("LogOutput: a pipe without a reader blocks no thread, and dropped lines are counted", "[log]") {
  const Pipe pipe;
  LogOutput output(pipe.writer.get(), MissingLine);
  const std::string line = std::string(99, 'x') + "\n";
  constexpr int kLines = 10'000;  // far more than a pipe takes
  for (int i = 0; i < kLines; ++i) output.Write(line, 0ms);
  const std::string first = pipe.Drain();
  REQUIRE(first.size() % line.size() == 0);
  const std::size_t arrived = first.size() / line.size();
  CHECK(arrived > 10);
  REQUIRE(arrived < kLines);
  output.Write("more\n", 0ms);
  CHECK(pipe.Drain() == MissingLine(kLines - arrived) + "more\n");
  output.Write("and more\n", 0ms);
  CHECK(pipe.Drain() == "and more\n");
}

TEST_CASE("LogOutput: with patience a line gets through to a slow reader", "[log]") {
  const Pipe pipe;
  LogOutput output(pipe.writer.get(), MissingLine);
  const int capacity = ::fcntl(pipe.writer.get(), F_GETPIPE_SZ);
  REQUIRE(capacity > 0);
  for (int room = capacity / 4096; room > 0; --room) output.Write(std::string(4095, 'x') + "\n", 0ms);
  std::thread writer([&output] { output.Write("warning\n", 1h); });
  std::string all;
  while (!all.ends_with("warning\n")) all += pipe.Drain();
  writer.join();
  CHECK(all.find("missing") == std::string::npos);
}

TEST_CASE("LogOutput: waits only once for a stuck reader", "[log]") {
  const Pipe pipe;
  LogOutput output(pipe.writer.get(), MissingLine);
  const std::string line(100'000, 'x');
  output.Write(line + "\n", 0ms);  // as much of it as there is room for
  output.Write("left out as well\n", 1h);
  const std::string cut_off = pipe.Drain();
  CHECK(cut_off == line.substr(0, cut_off.size()));
  output.Write("more\n", 0ms);
  CHECK(pipe.Drain() == "\n" + MissingLine(2) + "more\n");
}

TEST_CASE("LogOutput: survives a reader that is gone", "[log]") {
  Pipe pipe;
  LogOutput output(pipe.writer.get(), MissingLine);
  pipe.reader.Reset();
  // In the server SIGPIPE is ignored.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGPIPE, &ignore, &before) == 0);
  for (int i = 0; i < 3; ++i) output.Write("lost\n", 1h);
  REQUIRE(::sigaction(SIGPIPE, &before, nullptr) == 0);
  const Pipe other;
  output.MoveTo(UniqueFd(::fcntl(other.writer.get(), F_DUPFD_CLOEXEC, 0)));
  output.Write("more\n", 0ms);
  CHECK(other.Drain() == MissingLine(3) + "more\n");
}

TEST_CASE("LogOutput: lines of many threads stay whole", "[log]") {
  const TempDirectory folder;
  const std::string path = folder.File("log");
  {
    auto file = OpenLogFile(path);
    REQUIRE(file);
    LogOutput output(-1, MissingLine);
    output.MoveTo(*std::move(file));
    std::vector<std::thread> threads;
    for (char name = 'a'; name < 'e'; ++name) {
      threads.emplace_back([&output, line = std::string(300, name) + "\n"] {
        for (int i = 0; i < 200; ++i) output.Write(line, 0ms);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) REQUIRE(line == std::string(300, line[0]));
  CHECK(lines == 800);
}

TEST_CASE("LogOutput: a full disk drops lines and reports them later", "[log]") {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  LogOutput output(full.get(), MissingLine);
  output.Write("one\n", 0ms);
  output.Write("two\n", 0ms);
  const Pipe pipe;
  output.MoveTo(UniqueFd(::fcntl(pipe.writer.get(), F_DUPFD_CLOEXEC, 0)));
  output.Write("three\n", 0ms);
  CHECK(pipe.Drain() == MissingLine(2) + "three\n");
}

TEST_CASE("OpenLogFile: creates a private file under any umask and appends to it", "[log]") {
  const TempDirectory folder;
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    const std::string path = folder.File("log" + std::to_string(mask));
    for (int i = 0; i < 2; ++i) {
      const mode_t before = ::umask(mask);
      const auto file = OpenLogFile(path);
      ::umask(before);
      REQUIRE(file);
      CHECK(ModeOf(path) == 0600);
      REQUIRE(::write(file->get(), "line\n", 5) == 5);
      REQUIRE(::chmod(path.c_str(), 0644) == 0);
    }
    CHECK(ContentOf(path) == "line\nline\n");
  }
}

TEST_CASE("OpenLogFile: refuses everything but a regular file of this user", "[log]") {
  const TempDirectory folder;
  const std::string target = folder.File("target");
  std::ofstream(target) << "mine\n";
  REQUIRE(::chmod(target.c_str(), 0640) == 0);

  REQUIRE(::symlink(target.c_str(), folder.File("link").c_str()) == 0);
  CHECK(RefusalOf(folder.File("link")).find("symbolic link") != std::string::npos);
  REQUIRE(::symlink("nowhere", folder.File("dangling").c_str()) == 0);
  CHECK(RefusalOf(folder.File("dangling")).find("symbolic link") != std::string::npos);
  CHECK(::access(folder.File("nowhere").c_str(), F_OK) != 0);

  REQUIRE(::mkfifo(folder.File("fifo").c_str(), 0600) == 0);
  CHECK(RefusalOf(folder.File("fifo")).find("not a regular file") != std::string::npos);
  const UniqueFd reader(::open(folder.File("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK(RefusalOf(folder.File("fifo")).find("not a regular file") != std::string::npos);
  CHECK(RefusalOf("/dev/null").find("not a regular file") != std::string::npos);

  REQUIRE(::link(target.c_str(), folder.File("second").c_str()) == 0);
  CHECK(RefusalOf(folder.File("second")).find("second name") != std::string::npos);

  CHECK(RefusalOf(folder.path()).find("Is a directory") != std::string::npos);
  CHECK(RefusalOf(folder.File("none/log")).find("No such file") != std::string::npos);
  CHECK(ContentOf(target) == "mine\n");
  CHECK(ModeOf(target) == 0640);
}

}  // namespace reprise::test::log_output_test
