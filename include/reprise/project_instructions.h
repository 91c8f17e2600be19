#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// What people have written down for agents that work in a folder: AGENTS.md (https://agents.md), of which models are
// told all, and skills (https://agentskills.io), of which they are told the name, what it is for and where its file is.
// A file that lies where tools could have written it is told to models only after a person has allowed it as it is.
// Thread-safe.
class ProjectInstructions {
 public:
  enum class Kind { kInstructions, kSkill };
  enum class State {
    kUsed,
    kNew,       // nobody has allowed it yet
    kChanged,   // it is not what was allowed
    kUnusable,  // `problem` says why
  };
  struct File {
    std::string path;
    State state = State::kUsed;
    std::string digest{};   // "sha256:..." of what it holds; empty if that is not known
    std::string text{};     // valid UTF-8; empty if it is unusable
    std::string problem{};  // for people
    Kind kind = Kind::kInstructions;
    // Of a skill that is used: what its file says in front. The description is one line, with what is hidden spelled
    // out.
    std::string name{}, description{};
  };

  virtual ~ProjectInstructions() = default;
  // Those that there are now: the user's own, then those of the project, the nearest to the workspace last; behind them
  // the skills in the same order.
  virtual std::vector<File> List() const = 0;
  // From now on `path` is used as long as it is what `digest` says. kNotFound (reason "no_such_file"): there is no such
  // file of instructions; kConflict (reason "stale"): it is another by now; kIo.
  virtual Result<void> Allow(std::string_view path, std::string_view digest) = 0;
};

constexpr std::string_view ToString(ProjectInstructions::Kind kind) {
  return kind == ProjectInstructions::Kind::kSkill ? "skill" : "instructions";
}

constexpr std::string_view ToString(ProjectInstructions::State state) {
  constexpr std::string_view kNames[] = {"used", "new", "changed", "unusable"};
  return kNames[static_cast<int>(state)];
}

}  // namespace reprise
