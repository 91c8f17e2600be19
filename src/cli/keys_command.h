#pragma once

#include "cli/command_line.h"

namespace reprise {

// None of these ever prints what a key or a passphrase is. All return the exit status.

// `reprise keys init`: creates the key file if there is none.
int RunKeysInit(const CommandLine& line, const Environment& environment);
// `reprise keys list`: the keys' ids.
int RunKeysList(const CommandLine& line, const Environment& environment);
// `reprise keys rotate [--rewrap [--remove-old]]`: a new key, which seals from now on.
int RunKeysRotate(const CommandLine& line, const Environment& environment);
// `reprise keys rewrap [--remove-old]`: every file to the current key.
int RunKeysRewrap(const CommandLine& line, const Environment& environment);
// `reprise keys passphrase [--remove]`: sets, changes or removes the key file's passphrase.
int RunKeysPassphrase(const CommandLine& line, const Environment& environment);

}  // namespace reprise
