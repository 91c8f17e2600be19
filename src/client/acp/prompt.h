#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "reprise/result.h"

namespace reprise::acp {

// A file that came with a prompt.
struct PromptFile {
  std::string name, bytes;
};

// A user's message: the blocks of a session/prompt as a message of a chat.
struct Prompt {
  std::string text;
  std::vector<PromptFile> files;
};

// `blocks`: the request's "prompt". `workspace`: files in it get the names that the agent's tools use. kInvalidArgument
// names the wrong block.
Result<Prompt> ReadPrompt(const Json& blocks, const std::string& workspace);

}  // namespace reprise::acp
