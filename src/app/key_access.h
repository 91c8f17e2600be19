#pragma once

#include <string>

#include "crypto/key_set.h"
#include "reprise/options.h"

// The key file of a configuration, and where its passphrase comes from.
namespace reprise {

std::string KeyFileOf(const Options& options);

// The file that the options name, else a question at the terminal. Whoever asks gets kForbidden (reason
// "passphrase_needed") where there is neither.
PassphraseSource PassphraseFrom(const Options& options);

// A passphrase for the key file from now on: from `file`, or asked for twice. kInvalidArgument if it is too short or
// was typed differently the second time.
Result<SecretText> NewPassphrase(const std::string& file);

// The first line of a file that only its owner can read, or of a pipe or descriptor (/dev/fd/3); without the line end.
// Neither message nor detail ever holds any of it.
Result<SecretText> ReadPassphrase(const std::string& path);

}  // namespace reprise
