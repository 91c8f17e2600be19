#pragma once

#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

inline constexpr std::size_t kMaxFrontMatter = 16 * 1024;

// What stands in front of a skill's text (https://agentskills.io/specification): YAML between two lines "---".
struct SkillHead {
  std::string name;         // 1 to 64 small letters, digits and single hyphens between them
  std::string description;  // on one line, what is hidden spelled out, at most kMaxSkillDescription bytes
};
inline constexpr std::size_t kMaxSkillDescription = 1024;

// Other members are passed over. libyaml reads it (loaded at the first skill), with limits on size and nesting.
// kInvalidArgument says what is wrong, for the author; kUnavailable: the library is not there. REQUIRES: `text` is
// valid UTF-8.
Result<SkillHead> ReadSkillHead(std::string_view text);

}  // namespace reprise
