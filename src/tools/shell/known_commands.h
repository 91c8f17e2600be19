#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/shell/command_line.h"

// Knowledge of programs: which ones run other programs, and which words may follow a pattern that ends in `*`. The
// tables are strict: programs not in them need approval.
namespace reprise {

// The program's name without its folder.
std::string_view ProgramName(std::string_view word);

// Whether it runs other programs, or text from its words or input: shells, interpreters, env, xargs, find, make, ...
// Such a program gets no pattern with `*` and no input from a pipe.
bool RunsWhatItIsGiven(std::string_view program);
// Whether files that others may change decide what it does: such a program, a build, or a program named by its path.
bool FilesDecide(std::string_view program);
// Whether it is in the table and treats piped input as text.
bool OnlyReadsItsInput(const std::vector<ShellWord>& words);
// Whether it changes how the shell understands later commands (cd, alias, export, eval, ...). No pattern allows it.
bool ChangesTheShell(std::string_view program);
// Whether its first word is a sub-command (git, npm, ...). Only those in the table may be followed by `*`.
bool HasSubCommands(std::string_view program);
// The words with the usual name of the sub-command: "npm run test" for "npm t", "git add" for "git stage". nullopt: no
// sub-command of this name is known, so it may be short for any.
std::optional<std::vector<ShellWord>> WithUsualNames(std::vector<ShellWord> words);
// Whether a program with sub-commands may run some of these words as a command: "git bisect run", "npm exec".
bool MayRunItsWords(const std::vector<ShellWord>& words);
// Whether an option, an alias or a setting among the words hands another program to one that runs nothing by itself:
// `sort --comp=sh`, `git grep -Osh`, `git p`, `git config core.pager sh`. A sub-command unknown to git or cargo may be
// an alias.
bool IsHandedAProgram(const std::vector<ShellWord>& words);
// Whether it takes its words as file names, addresses or text and runs none of them: mkdir, cp, printf.
bool OnlyTakesNames(std::string_view program);

// The words that may follow a pattern that ends in `*`.
struct Tail {
  std::vector<std::string_view> words;         // the pattern's; "?" is any word
  std::string_view letters = {};               // one-letter options, which may be combined and followed by a number
  std::vector<std::string_view> options = {};  // long options; a final "=" allows any value
  bool takes_number = false;                   // -5
  bool takes_words = true;                     // words that do not begin with '-', '+' or '@'
  bool only_plain = false;                     // they go to a shell again: only letters, digits and _ . / : , = -
};
// The entry for exactly these words; null if there is none.
const Tail* FindTail(const std::vector<std::string>& words);
// The number of words of the longest table entry that the command begins with; 0 if there is none.
std::size_t KnownPrefix(const std::vector<ShellWord>& words);
// If `tail` is null, no options are accepted.
bool MayFollow(const Tail* tail, const ShellWord& word);
// The end of a sentence: "followed by any words that do not begin with ..., and by no options but ...".
std::string WhatMayFollow(const Tail* tail);

}  // namespace reprise
