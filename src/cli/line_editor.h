#pragma once

#include <memory>
#include <string>

namespace reprise {

// Where a LineEditor gets what is typed.
class KeySource {
 public:
  enum class Came { kByte, kEnd, kInterrupt, kWithdrawn, kSuspend, kResized };

  virtual ~KeySource() = default;
  // Blocks for the next byte, or for something else that a person or the program does meanwhile.
  virtual Came NextByte(unsigned char& byte) = 0;
};

// Edits a text on the terminal: cursor keys, history, wide characters, and a paste as what it is, line ends and all.
// For one thread. The terminal is in the mode it was before while no Edit runs.
class LineEditor {
 public:
  // Null if standard input is no terminal, nor stdout or stderr, or if the library (libedit) is not there. `keys` must
  // outlive it. Call before any thread starts: it sets the process's locale for characters.
  static std::unique_ptr<LineEditor> Open(KeySource& keys);
  virtual ~LineEditor() = default;

  enum class Came {
    kLine,
    kEnd,        // Ctrl-D on an empty line, or the terminal is gone
    kInterrupt,  // Ctrl-C; `text` is what it cleared
    kWithdrawn,  // as the source says
  };
  // Shows `prompt` (without line ends) and edits until Enter. Alt-Enter begins another line.
  virtual Came Edit(const std::string& prompt, std::string& text) = 0;
  // What the cursor-up key brings back.
  virtual void Remember(const std::string& text) = 0;
};

}  // namespace reprise
