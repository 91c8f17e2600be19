#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/shell/command_line.h"

// What is known of programs: which of them run what they are given, and which words may follow where a pattern ends in
// `*`. The tables are strict: what is not in them is asked about.
namespace reprise {

// Its name without the folder it lies in.
std::string_view ProgramName(std::string_view word);

// It runs other programs, or text that it is given or reads: shells, interpreters, env, xargs, find, make, ... No
// pattern with `*` is taken for it, and nothing that comes through a pipe.
bool RunsWhatItIsGiven(std::string_view program);
// Files that others may change decide what it does: such a program, a build, or one that is named by its path.
bool FilesDecide(std::string_view program);
// It is in the table, and takes what comes through a pipe for text.
bool OnlyReadsItsInput(const std::vector<ShellWord>& words);
// It changes how the shell understands what follows (cd, alias, export, eval, ...): no pattern allows it.
bool ChangesTheShell(std::string_view program);
// It does what its first word says (git, npm, ...): only the sub-commands of the table may be followed by `*`.
bool HasSubCommands(std::string_view program);
// Whether a program with sub-commands may run, as a command, what stands among these words: "git bisect run", "npm
// exec".
bool MayRunItsWords(const std::vector<ShellWord>& words);
// Whether an option, an alias or a setting among the words hands another program to one that runs nothing by itself:
// `sort --comp=sh`, `git grep -Osh`, `git p`, `git config core.pager sh`. What is not known to git and cargo may be
// one.
bool IsHandedAProgram(const std::vector<ShellWord>& words);
// It runs what follows it, so that a program which is given it can do anything: sh, env, python3.
bool IsInterpreter(std::string_view word);
// It takes its words for names of files, addresses or text, and runs none of them: mkdir, cp, printf.
bool OnlyTakesNames(std::string_view program);

// What may follow the words of a pattern that ends in `*`.
struct Tail {
  std::vector<std::string_view> words;  // the pattern's; "?" stands for any one
  std::string_view letters = {};        // options of one letter, which may stand together and have a number behind them
  std::vector<std::string_view> options = {};  // long ones; with "=" at the end: any value may follow
  bool takes_number = false;                   // -5
  bool takes_words = true;                     // what does not begin with '-', '+' or '@'
  bool only_plain = false;  // and they go to a shell again: of letters, digits and _ . / : , = - alone
};
// Of exactly these words; null: they are not in the table.
const Tail* FindTail(const std::vector<std::string>& words);
// The longest pattern of the table that a command begins with: how many words it has; 0: none.
std::size_t KnownPrefix(const std::vector<ShellWord>& words);
// `tail` may be null: then options are not taken at all.
bool MayFollow(const Tail* tail, const ShellWord& word);
// "followed by any words, of options only -n and --oneline": to end a sentence.
std::string WhatMayFollow(const Tail* tail);

}  // namespace reprise
