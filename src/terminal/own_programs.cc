#include "terminal/own_programs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/private_file.h"
#include "base/try.h"

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

}  // namespace

Result<LentFile> LentFile::Make(const std::string& text) {
  const Environment environment = ProcessEnvironment();
  const std::string folder = environment("XDG_RUNTIME_DIR").value_or(environment("TMPDIR").value_or("/tmp"));
  std::string path = folder + "/reprise-XXXXXX.md";
  UniqueFd fd(::mkostemps(path.data(), 3, O_CLOEXEC));
  const auto failed = [&] {
    return Fail(ErrorCode::kIo, "no temporary file can be made in " + folder + ": " + std::strerror(errno));
  };
  if (fd.get() < 0) return failed();
  LentFile file(std::move(path), std::move(fd));
  if (!WriteAll(file.fd_.get(), text)) return failed();
  return file;
}

LentFile::~LentFile() {
  if (fd_.get() >= 0) ::unlink(path_.c_str());
}

std::optional<std::string> LentFile::Read(std::size_t most) const {
  auto text = ReadSmallFile(path_, most);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

int RunAtTerminal(const std::string& command, const std::string& argument, const std::string& directory) {
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGXFSZ, SIG_DFL);
    if (::chdir(directory.c_str()) != 0) ::_exit(127);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), "sh", argument.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  for (int status = 0;;) {
    if (::waitpid(child, &status, WUNTRACED) < 0) {
      if (errno != EINTR) return -1;
    } else if (WIFSTOPPED(status)) {
      ::raise(SIGSTOP);  // by Ctrl-Z: `fg` of the person's shell continues both
    } else {
      return status;
    }
  }
}

// Both by the shell, because the variables may hold options.

Result<std::string> EditInOwnEditor(const std::string& text) {
  const Environment environment = ProcessEnvironment();
  const std::string editor = environment("VISUAL").value_or(environment("EDITOR").value_or("editor"));
  const auto file = TRY(LentFile::Make(text));
  const int status = RunAtTerminal(editor + " \"$1\"", file.path());
  if (status != 0) {
    const std::string how = status < 0            ? "cannot be run"
                            : WIFSIGNALED(status) ? "was ended by signal " + std::to_string(WTERMSIG(status))
                                                  : "ended with status " + std::to_string(WEXITSTATUS(status));
    return Fail(ErrorCode::kUnavailable,
                "the editor " + how + ": $VISUAL or $EDITOR names another; your text is unchanged");
  }
  auto edited = file.Read(kMaxEdited);
  if (!edited) return Fail(ErrorCode::kIo, "the edited text cannot be read; your text is unchanged");
  while (edited->ends_with('\n')) edited->pop_back();
  return *std::move(edited);
}

Result<void> ShowInPager(const std::string& text) {
  const std::string own = ProcessEnvironment()("PAGER").value_or("");
  const auto file = TRY(LentFile::Make(text));
  const std::string command =
      own.empty() ? "if command -v less > /dev/null; then less -R \"$1\"; else more \"$1\"; fi" : own + " \"$1\"";
  const int status = RunAtTerminal(command, file.path());
  if (status < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    return Fail(ErrorCode::kUnavailable, "no pager can be run: $PAGER, less or more");
  }
  return {};
}

}  // namespace reprise
