#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

// Parses a command line as the shell would, as far as possible without running it. It recognises a part of the POSIX
// grammar: simple commands of words, joined by | && || ; & and line ends. It refuses everything else (substitutions,
// compound commands, functions, here-documents, comments, control characters) rather than guess. For accepted lines,
// the words are exactly those that /bin/sh passes to the program; tests/tools/command_line_test.cc compares the two.
namespace reprise {

struct ShellWord {
  enum class Kind {
    kLiteral,  // the program gets `text`
    kGlob,     // file names that begin with `text`, the part before the first special character
    kOpaque,   // depends on variables or on the shell; `text` means nothing
  };
  std::string text;
  Kind kind = Kind::kLiteral;
  bool is_star = false;  // kGlob: it is a lone `*`
  bool is_literal() const { return kind == Kind::kLiteral; }
  bool operator==(const ShellWord&) const = default;
};

// How a command is joined to the previous one.
enum class ShellJoint { kFirst, kPipe, kAnd, kOr, kThen };

struct ShellCommand {
  ShellJoint joint = ShellJoint::kFirst;
  std::vector<ShellWord> words;   // the program first; empty if there are only assignments or redirections
  bool has_assignments = false;   // NAME=VALUE before the program
  bool has_redirections = false;  // except those with /dev/null, and of 1 and 2 into each other
  bool in_background = false;     // the command, or the list that it ends
};

using CommandLine = std::vector<ShellCommand>;

// Never empty. kInvalidArgument for unrecognised grammar; the message names it.
Result<CommandLine> ParseCommandLine(std::string_view text);

// The word in shell syntax: bare, or in single quotes. REQUIRES: no control characters.
std::string QuotedWord(std::string_view word);

}  // namespace reprise
