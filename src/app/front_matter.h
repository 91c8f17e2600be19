#pragma once

#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

inline constexpr std::size_t kMaxFrontMatter = 16 * 1024;

// The head of a skill's file (https://agentskills.io/specification): YAML between two lines "---".
struct SkillHead {
  std::string name;         // 1 to 64 small letters, digits and single hyphens between them
  std::string description;  // one line, hidden characters spelled out, at most kMaxSkillDescription bytes
};
inline constexpr std::size_t kMaxSkillDescription = 1024;

// Ignores other members. libyaml, which is loaded at the first skill, reads the YAML, with limits on size and nesting.
// kInvalidArgument tells the author the fault; kUnavailable if the library is missing. REQUIRES: `text` is valid UTF-8.
Result<SkillHead> ReadSkillHead(std::string_view text);

}  // namespace reprise
