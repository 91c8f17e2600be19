#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.h"

namespace {

// Whatever is opened first would take the number of a standard descriptor that was closed, and be written to by
// mistake. Reading from that of stdout's place is fine; writing there fails, which is told.
void OpenStandardDescriptors() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", kModes[fd]));  // the lowest number: this one
  }
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardDescriptors();
  return reprise::RunMain(argc, argv);
}
