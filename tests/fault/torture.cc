#include "fault/torture.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "support/test.h"

namespace reprise {

const Torture& Torture::Get() {
  static const Torture torture = [] {
    Torture made;
    made.is_long = std::getenv("REPRISE_TORTURE_MINUTES") != nullptr;
    if (const char* seed = std::getenv("REPRISE_TORTURE_SEED"))
      made.seed = static_cast<std::uint32_t>(std::atoll(seed));
    if (kSanitized) made.fraction = 25;
    return made;
  }();
  return torture;
}

Silence::Silence() : stderr_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

Silence::~Silence() {
  ::dup2(stderr_, STDERR_FILENO);
  ::close(stderr_);
}

void Report(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace reprise
