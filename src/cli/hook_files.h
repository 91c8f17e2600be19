#pragma once

#include <string>
#include <vector>

#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The files in the workspace that the hooks' commands name, which no tool may touch: the server is going to run them.
// Canonical paths. Looked at are the words of each command, and what follows the first '=' of one ("--rules=./a.txt").
// Folders are passed over, and so is what a word contains otherwise (the text of `sh -c`).
//
// kInvalidArgument, with a message for the person at the terminal, for a file that could be put in another's place:
//  - a program, or another word with a '/', that names nothing in the workspace. A word with white space or "://"
//    is a text or an address if it names nothing.
//  - one reached in the workspace by way of a symbolic link or of "..", or one with further names (hard links);
//  - a program that is found in the workspace by way of PATH.
Result<std::vector<std::string>> FilesOfHooks(const Options& options);

}  // namespace reprise
