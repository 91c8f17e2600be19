#pragma once

#include <string>

#include "reprise/interaction.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The plaintext of one file, wherever it lies: a checkpoint, a chat.json, a journal, or what a server keeps for itself.
struct LoneFile {
  std::string text;      // JSON; a journal's is a value per line
  bool cut_off = false;  // of a journal: its last record was not written to its end, and is left out
  bool is_part = false;  // of an interaction with a long state, without the folder that has the rest of it
};

// A plain file needs no key. kNotFound, kForbidden (sealed, and there is no key file), kCorruption.
Result<LoneFile> ReadLoneFile(const std::string& path, const Options& options);

// The finished interaction that is in such a file. The same failures; kInvalidArgument if it holds something else.
Result<Interaction> ReadLoneInteraction(const std::string& path, const Options& options);

}  // namespace reprise
