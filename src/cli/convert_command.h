#pragma once

#include "cli/command_line.h"

namespace reprise {

// `reprise encrypt` and `reprise decrypt`: sealed copies of what is plain, and the reverse; of one file, of chats, or
// of a whole data folder, which can be converted in place too. A chat is converted as a whole or not at all, and what
// it is made from is never touched. Both return the exit status.
int RunEncrypt(const CommandLine& line, const Environment& environment);
int RunDecrypt(const CommandLine& line, const Environment& environment);

}  // namespace reprise
