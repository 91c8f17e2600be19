#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "cli/commands.h"
#include "process/listeners.h"

namespace {

// Whatever is opened first would take the number of a standard descriptor that was closed, and be written to by
// mistake. Reading from that of stdout's place is fine; writing there fails, which is told.
void OpenStandardDescriptors() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", kModes[fd]));  // the lowest number: this one
  }
}

// Beyond the limit of a file's size (ulimit -f), a write is to fail like one to a full disk. Commands get the signal's
// usual effect again.
void IgnoreSizeSignal() { ::signal(SIGXFSZ, SIG_IGN); }

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == reprise::kOpenListeners) return reprise::OpenListeners(argc, argv);
  OpenStandardDescriptors();
  IgnoreSizeSignal();
  return reprise::RunMain(argc, argv);
}
