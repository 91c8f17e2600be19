#pragma once

#include <string_view>

#include "base/environment.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// Reads a configuration (JSON with comments, schemas/config.schema.json) over `options`. ${NAME} in a string stands for
// an environment variable, $${ for the characters themselves. An unset variable is an error that names it and the key,
// except in a provider's api_key: one file can list every provider, and those without a key are merely unusable.
//
// kInvalidArgument; the message names the key and the expected value, and never quotes a value that may be a secret.
Result<void> ApplyConfig(Options& options, std::string_view text, const Environment& environment);

}  // namespace reprise
