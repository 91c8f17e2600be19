#pragma once

#include <string>

#include "reprise/interaction.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The plaintext of a single file in any place: a checkpoint, a chat.json, a journal, or a server's own file.
struct LoneFile {
  std::string text;      // JSON; one value per line for a journal
  bool cut_off = false;  // of a journal: its last record was incomplete, and is left out
  bool is_part = false;  // an interaction with a long state, without the folder that has the rest
};

// A plain file needs no key. kNotFound, kForbidden (sealed, but there is no key file), kCorruption.
Result<LoneFile> ReadLoneFile(const std::string& path, const Options& options);

// The finished interaction in such a file. The same failures; kInvalidArgument if the file holds something else.
Result<Interaction> ReadLoneInteraction(const std::string& path, const Options& options);

}  // namespace reprise
