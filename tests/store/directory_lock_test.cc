#include "store/directory_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::directory_lock_test {

TEST_CASE("DirectoryLock: the second to ask is told who has it", "[store]") {
  const TempDirectory folder;
  const auto lock = DirectoryLock::Acquire(folder.File(".lock"));
  REQUIRE(lock);
  const auto second = DirectoryLock::Acquire(folder.File(".lock"));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kConflict);
  CHECK(second.error().reason == "store_locked");
  CHECK(second.error().message == "another server (process " + std::to_string(::getpid()) + ") uses this data folder");
}

TEST_CASE("DirectoryLock: is free again when its owner lets go", "[store]") {
  const TempDirectory folder;
  REQUIRE(DirectoryLock::Acquire(folder.File(".lock")));
  CHECK(DirectoryLock::Acquire(folder.File(".lock")));
}

TEST_CASE("DirectoryLock: what a killed process left behind blocks nobody", "[store]") {
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

TEST_CASE("DirectoryLock: a stale file with anything in it is no obstacle", "[store]") {
  const TempDirectory folder;
  std::ofstream(folder.File(".lock")) << "99999999 and more";
  CHECK(DirectoryLock::Acquire(folder.File(".lock")));
}

}  // namespace reprise::directory_lock_test
