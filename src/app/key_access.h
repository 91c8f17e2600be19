#pragma once

#include <string>

#include "crypto/key_set.h"
#include "reprise/options.h"

// The configured key file, and the source of its passphrase.
namespace reprise {

std::string KeyFileOf(const Options& options);

// Reads the configured file, or else asks at the terminal. Without either, the source fails with kForbidden (reason
// "passphrase_needed").
PassphraseSource PassphraseFrom(const Options& options);

// A new passphrase for the key file: from `file`, or asked for twice. kInvalidArgument if it is too short, or if the
// second one differs.
Result<SecretText> NewPassphrase(const std::string& file);

// The first line, without its end, of a file that only its owner can read, or of a pipe or descriptor (/dev/fd/3).
// Errors hold none of it, in message or detail.
Result<SecretText> ReadPassphrase(const std::string& path);

}  // namespace reprise
