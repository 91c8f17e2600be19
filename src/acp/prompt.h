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

// What a person has sent: the blocks of a session/prompt as a message of a chat.
struct Prompt {
  std::string text;
  std::vector<PromptFile> files;
};

// `blocks`: the request's "prompt". `workspace`: files in it are named as the agent's tools do. kInvalidArgument names
// the block that is wrong.
Result<Prompt> ReadPrompt(const Json& blocks, const std::string& workspace);

}  // namespace reprise::acp
