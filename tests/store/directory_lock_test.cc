#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "store/data_folder.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::directory_lock_test {

TEST_CASE("DirectoryLock: a second process is told which one holds it", "[store]") {
  const TempDirectory folder;
  const auto lock = DirectoryLock::Acquire(folder.File(".lock"));
  REQUIRE(lock);
  const auto second = DirectoryLock::Acquire(folder.File(".lock"));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kConflict);
  CHECK(second.error().reason == "store_locked");
  CHECK(second.error().message == "another server (process " + std::to_string(::getpid()) + ") uses this data folder");
}

TEST_CASE("DirectoryLock: it is free again when its owner releases it", "[store]") {
  const TempDirectory folder;
  REQUIRE(DirectoryLock::Acquire(folder.File(".lock")));
  CHECK(DirectoryLock::Acquire(folder.File(".lock")));
}

TEST_CASE("DirectoryLock: a lock that a killed process left behind does not block", "[store]") {
  const TempDirectory folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = DirectoryLock::Acquire(folder.File(".lock"));
    [[maybe_unused]] const ssize_t told = ::write(ready[1], lock ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char answer = 0;
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  const auto while_it_lives = DirectoryLock::Acquire(folder.File(".lock"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  REQUIRE_FALSE(while_it_lives);
  CHECK(while_it_lives.error().message.find(std::to_string(child)) != std::string::npos);
  CHECK(DirectoryLock::Acquire(folder.File(".lock")));
}

TEST_CASE("DirectoryLock: a stale file is no obstacle, whatever its content", "[store]") {
  const TempDirectory folder;
  std::ofstream(folder.File(".lock")) << "99999999 and more";
  CHECK(DirectoryLock::Acquire(folder.File(".lock")));
}

TEST_CASE("DirectoryLock: the file tells where the server listens", "[store]") {
  const TempDirectory folder;
  const std::string file = folder.File(".lock");
  CHECK_FALSE(DirectoryLock::FindHolder(file).value());  // there is no file
  auto lock = DirectoryLock::Acquire(file).value();
  const std::string pid = std::to_string(::getpid());
  auto holder = DirectoryLock::FindHolder(file).value();
  REQUIRE(holder);
  CHECK(holder->pid == pid);
  CHECK(holder->url.empty());
  lock->NoteUrl("http://127.0.0.1:8000");
  holder = DirectoryLock::FindHolder(file).value();
  REQUIRE(holder);
  CHECK(holder->pid == pid);
  CHECK(holder->url == "http://127.0.0.1:8000");
  CHECK(DirectoryLock::Acquire(file).error().message == "another server (process " + pid + ") uses this data folder");
  lock.reset();
  CHECK_FALSE(DirectoryLock::FindHolder(file).value());
  std::ifstream text(file);
  CHECK(std::string(std::istreambuf_iterator<char>(text), {}) == pid + "\n");
}

TEST_CASE("DirectoryLock: the URL of a killed server does not count", "[store]") {
  const TempDirectory folder;
  const std::string file = folder.File(".lock");
  std::ofstream(file) << "4711\nhttp://127.0.0.1:9\n";
  CHECK_FALSE(DirectoryLock::FindHolder(file).value());
  const auto lock = DirectoryLock::Acquire(file);
  REQUIRE(lock);
  CHECK(DirectoryLock::FindHolder(file).value()->url.empty());
}

TEST_CASE("DirectoryLock: a URL counts only as a whole line", "[store]") {
  const TempDirectory folder;
  const std::string file = folder.File(".lock");
  const auto lock = DirectoryLock::Acquire(file);
  REQUIRE(lock);
  for (const char* text : {"1\nhttp://127.0.0.1:80", "http://127.0.0.1:80\n", "1\n\nhttp://127.0.0.1:80\n",
                           "1\nfile:///etc\n", "1\nhttp://a\x1b[2J\n", "1\n", "", "\n"}) {
    CAPTURE(text);
    std::ofstream(file, std::ios::trunc) << text;
    const auto holder = DirectoryLock::FindHolder(file).value();
    REQUIRE(holder);
    CHECK(holder->url.empty());
  }
}

TEST_CASE("DirectoryLock: only a regular file is read", "[store]") {
  const TempDirectory folder;
  const std::string link = folder.File("link");
  REQUIRE(::symlink("/etc/hostname", link.c_str()) == 0);
  CHECK(DirectoryLock::FindHolder(link).error().reason == "integrity_missing");
  CHECK(DirectoryLock::FindHolder(folder.path()).error().reason == "integrity_missing");
}

TEST_CASE("DirectoryLock: asking for the holder does not keep others from taking it", "[store]") {
  const TempDirectory folder;
  const std::string file = folder.File(".lock");
  REQUIRE(DirectoryLock::Acquire(file));
  std::atomic<bool> stop = false;
  std::jthread asking([&] {
    while (!stop) static_cast<void>(DirectoryLock::FindHolder(file));
  });
  int refused = 0;
  for (int i = 0; i < 2000; ++i) refused += DirectoryLock::Acquire(file) ? 0 : 1;
  stop = true;
  CHECK(refused == 0);
}

TEST_CASE("DirectoryLock: a waiter continues when the holder writes its URL", "[store]") {
  const TempDirectory folder;
  const std::string file = folder.File(".lock");
  auto lock = DirectoryLock::Acquire(file);
  REQUIRE(lock);
  const auto now = DirectoryLock::Clock::now;
  const auto began = now();
  CHECK_FALSE(DirectoryLock::AwaitSettled(file, began + std::chrono::milliseconds(60)));
  CHECK(now() - began >= std::chrono::milliseconds(60));
  std::thread tells([&] { (*lock)->NoteUrl("http://127.0.0.1:1"); });
  CHECK(DirectoryLock::AwaitSettled(file, began + std::chrono::minutes(1)));
  tells.join();
  CHECK(DirectoryLock::FindHolder(file).value()->url == "http://127.0.0.1:1");
}

TEST_CASE("DirectoryLock: a waiter for the release continues when it is released", "[store]") {
  const TempDirectory folder;
  const std::string file = folder.File(".lock");
  CHECK(DirectoryLock::AwaitRelease(file, DirectoryLock::Clock::now()));  // there is no such file
  auto lock = DirectoryLock::Acquire(file);
  REQUIRE(lock);
  (*lock)->NoteUrl("http://127.0.0.1:1");
  const auto began = DirectoryLock::Clock::now();
  CHECK_FALSE(DirectoryLock::AwaitRelease(file, began - std::chrono::seconds(1)));
  CHECK_FALSE(DirectoryLock::AwaitRelease(file, began + std::chrono::milliseconds(60)));
  std::thread releases([&] { lock->reset(); });
  CHECK(DirectoryLock::AwaitRelease(file, began + std::chrono::minutes(1)));
  releases.join();
  CHECK_FALSE(DirectoryLock::FindHolder(file).value());
}

}  // namespace reprise::directory_lock_test
