#pragma once

#include <optional>
#include <string>

#include "base/system.h"
#include "reprise/result.h"

// The person's own programs, which get the terminal for a while.
namespace reprise {

// A text in a private file, for another program; in $XDG_RUNTIME_DIR if set. Its end removes the file.
class LentFile {
 public:
  static Result<LentFile> Make(const std::string& text);
  LentFile(LentFile&&) = default;
  LentFile& operator=(LentFile&&) = delete;
  ~LentFile();

  const std::string& path() const { return path_; }
  // What is in it now; nullopt if it cannot be read, or is longer than `most`.
  std::optional<std::string> Read(std::size_t most) const;

 private:
  LentFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;  // closed: it was moved away
};

// Runs a command of /bin/sh in the folder `directory`; `argument` is its $1. Returns what waitpid(2) says, or -1 if the
// command could not be run. REQUIRES: the terminal is in its usual mode, if the command uses it.
int RunAtTerminal(const std::string& command, const std::string& argument, const std::string& directory = ".");

// Lets the person change `text` in their own editor: $VISUAL, else $EDITOR, else Debian's `editor`. Fails,
// with advice, if the editor cannot be run, fails, or leaves no readable text. REQUIRES: the terminal is in its usual
// mode.
Result<std::string> EditInOwnEditor(const std::string& text);

// Shows a text in the person's pager: $PAGER, else `less`, else `more`. Fails if none can be run. REQUIRES: likewise.
Result<void> ShowInPager(const std::string& text);

}  // namespace reprise
