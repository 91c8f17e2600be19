#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Where a LineEditor gets what is typed.
class KeySource {
 public:
  enum class Came {
    kKey,
    kGivenUp,  // the edit is over, for a reason that the source knows
    kSuspend,
    kResized,
  };

  virtual ~KeySource() = default;
  // Blocks for the next key (Key::Kind::kEdits, see keys.h), or for something else that a person or the program does
  // meanwhile.
  virtual Came NextKey(std::string& key) = 0;
  // The editor knows the terminal's new size; what is on the screen is to be drawn again.
  virtual void Resized() = 0;
  // Another program gets the terminal, as it was before, and gives it back.
  virtual void LeaveTerminal() = 0;
  virtual void ReturnToTerminal() = 0;
};

// Edits a text on the terminal: cursor keys, history, wide characters, and a paste as what it is, line ends, control
// characters and all.
// For one thread. The terminal is in the mode it was before while no Edit runs.
class LineEditor {
 public:
  // Null if standard input is no terminal, nor stdout or stderr, or if the library (libedit) is not there. `keys` must
  // outlive it. Call before any thread starts: it sets the process's locale for characters.
  static std::unique_ptr<LineEditor> Open(KeySource& keys);
  virtual ~LineEditor() = default;

  enum class Came {
    kLine,
    kEnd,      // Ctrl-D on an empty line
    kGivenUp,  // as the source says; `text` is what it is now
  };
  // Shows `prompt` (without line ends) and edits `text` until Enter. Alt-Enter, Shift-Enter and Ctrl-J begin another
  // line, Ctrl-X Ctrl-E opens the text in the person's own editor ($VISUAL, $EDITOR). A text that was given up is gone
  // on with where the cursor was.
  virtual Came Edit(const std::string& prompt, std::string& text) = 0;
  // Whether the text has no character. REQUIRES: it is edited.
  virtual bool IsEmpty() const = 0;
  // What the cursor-up key brings back, in the first line of a text.
  virtual void Remember(const std::string& text) = 0;
  // Forgets what was remembered.
  virtual void ForgetAll() = 0;

  // What the Tab key may put in place of a line that begins like this (the text in front of the cursor): whole lines.
  // Where there are several, they are given to `show`, and their common beginning is put in.
  struct Completion {
    std::function<std::vector<std::string>(const std::string& line)> complete;
    std::function<void(const std::vector<std::string>& lines)> show;
  };
  virtual void SetCompletion(Completion completion) = 0;
  // What Ctrl-O does, beside the line.
  virtual void SetUnfold(std::function<void()> unfold) = 0;

  // --- for whoever draws above the line while it is edited
  // The rows that prompt and text take in front of the cursor's, and altogether, on a terminal of so many columns.
  virtual int RowsAboveCursor(int columns) const = 0;
  virtual int Rows(int columns) const = 0;
  // Draws prompt and text again. REQUIRES: the cursor is at the beginning of an empty line.
  virtual void Redraw() = 0;
};

}  // namespace reprise
