#include "terminal/own_editor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/environment.h"
#include "base/private_file.h"
#include "base/system.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxEdited = 16 << 20;

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

// Runs `editor FILE` by the shell, because the variables may hold options.
bool RunEditor(const std::string& editor, const std::string& file) {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const std::string command = editor + " \"$1\"";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), "sh", file.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<std::string> EditInOwnEditor(const std::string& text) {
  const Environment environment = ProcessEnvironment();
  const std::string folder = environment("XDG_RUNTIME_DIR").value_or(environment("TMPDIR").value_or("/tmp"));
  std::string file = folder + "/reprise-XXXXXX.md";
  const UniqueFd fd(::mkostemps(file.data(), 3, O_CLOEXEC));
  if (fd.get() < 0) return std::nullopt;
  std::optional<std::string> edited;
  const std::string editor = environment("VISUAL").value_or(environment("EDITOR").value_or("editor"));
  if (WriteAll(fd.get(), text) && RunEditor(editor, file)) {
    if (auto read = ReadSmallFile(file, kMaxEdited)) edited = *std::move(read);
  }
  ::unlink(file.c_str());
  while (edited && edited->ends_with('\n')) edited->pop_back();
  return edited;
}

}  // namespace reprise
