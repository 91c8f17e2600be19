#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

// What the shell makes of a command line, as far as that can be told without running it. This is a recogniser of a part
// of the POSIX shell's grammar: simple commands of words, joined by | && || ; & and line ends. Whatever is beyond that
// (substitutions, compound commands, functions, here-documents, comments, control characters) is refused, so that
// nothing is believed of it. For what is taken, the words are exactly those that /bin/sh hands to the program;
// tests/tools/command_line_test.cc holds the two together.
namespace reprise {

struct ShellWord {
  enum class Kind {
    kLiteral,  // the program gets `text`
    kGlob,     // names of files: each begins with `text`, which is what stands before the first special character
    kOpaque,   // it depends on variables, or on which shell it is; `text` means nothing
  };
  std::string text;
  Kind kind = Kind::kLiteral;
  bool is_star = false;  // kGlob: it is `*` and nothing else
  bool is_literal() const { return kind == Kind::kLiteral; }
  bool operator==(const ShellWord&) const = default;
};

// How a command is joined to the one before it.
enum class ShellJoint { kFirst, kPipe, kAnd, kOr, kThen };

struct ShellCommand {
  ShellJoint joint = ShellJoint::kFirst;
  std::vector<ShellWord> words;   // the program first; empty: only assignments or redirections
  bool has_assignments = false;   // NAME=VALUE before the program
  bool has_redirections = false;  // other than to or from /dev/null, and of 1 and 2 into each other
  bool in_background = false;     // it, or the list that it ends
};

using CommandLine = std::vector<ShellCommand>;

// Never empty. kInvalidArgument: it is beyond what is recognised; the message says what.
Result<CommandLine> ParseCommandLine(std::string_view text);

// The word as it is written for a shell: as it is, or in single quotes. REQUIRES: no control characters.
std::string QuotedWord(std::string_view word);

}  // namespace reprise
