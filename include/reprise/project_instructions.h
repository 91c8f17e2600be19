#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/approval.h"
#include "reprise/result.h"

namespace reprise {

// Instructions by people for agents that work in a folder: AGENTS.md (https://agents.md), which models get in full, and
// skills (https://agentskills.io), of which they get the name, the purpose and the file's place. Commands are messages
// that people send by name, and agents are sub-agents that models start by name. A file that tools could have written
// reaches models only after a person has allowed its present content. Thread-safe.
//
//   for (const auto& file : instructions.List()) {
//     if (file.state != reprise::ProjectInstructions::State::kNew) continue;
//     if (auto ok = instructions.Allow(file.path, file.digest); !ok) return Complain(ok.error().message);
//   }
class ProjectInstructions {
 public:
  enum class Kind { kInstructions, kSkill, kCommand, kAgent };
  enum class State {
    kUsed,
    kNew,       // not allowed yet
    kChanged,   // differs from the allowed content
    kUnusable,  // `problem` says why
  };
  struct File {
    std::string path;
    State state = State::kUsed;
    std::string digest{};   // "sha256:..." of the content; empty if unknown
    std::string text{};     // valid UTF-8; empty if unusable
    std::string problem{};  // for people
    Kind kind = Kind::kInstructions;
    // Of a skill in use: from its file's front matter; of a command or an agent: that of its file. The description, of
    // those in use alone, is one line, with invisible characters spelled out.
    std::string name{}, description{};
  };

  virtual ~ProjectInstructions() = default;
  // The present files: the user's own, then the project's, the nearest to the workspace last; then the skills, the
  // commands and the agents in the same order.
  virtual std::vector<File> List() const = 0;
  // Allows `path` as long as its content has `digest`. kNotFound (reason "no_such_file"): no such file of instructions;
  // kConflict (reason "stale"): it has changed; kIo.
  virtual Result<void> Allow(std::string_view path, std::string_view digest) = 0;
  // The message that the command or the skill `name` stands for: its text, with $ARGUMENTS, and $1 to $9, replaced.
  // Without one of that name, of the BuiltInCommand. kNotFound (reason "no_such_command"): none has the name;
  // kForbidden (reason "untrusted"): the command has not been allowed as it is now; kInvalidArgument: the file is
  // unusable; kTooLarge.
  struct Expanded {
    std::string message;
    std::string model{};  // that the command names; empty: none
  };
  virtual Result<Expanded> Expand(std::string_view name, std::string_view arguments) const = 0;
  // The agents of List.
  virtual std::vector<File> Agents() const { return {}; }
  struct Agent {
    std::string name;
    std::string instructions;                         // not empty
    std::optional<std::vector<std::string>> tools{};  // names, or patterns of names (fnmatch(3)); nullopt: all
    std::string model{};                              // empty: the chat's
    std::optional<ApprovalMode> mode{};               // holds beside the chat's; nullopt: only the chat's
  };
  // kNotFound (reason "no_such_agent"), kForbidden (reason "untrusted"): it has not been allowed as it is now;
  // kInvalidArgument: the file is unusable.
  virtual Result<Agent> FindAgent(std::string_view /*name*/) const {
    return Fail(Reason::kNoSuchAgent, "there are no agents here");
  }
};

// A command that every folder has, as long as no file of it has the name.
struct BuiltInCommand {
  std::string_view name, description, text;
};

inline constexpr BuiltInCommand kBuiltInCommands[] = {
    {"init", "writes an AGENTS.md for this folder",
     "Write AGENTS.md in the top folder of this workspace, for agents that will work here. First look around: the "
     "README, the files that build and test, the configuration of linters, the layout of the sources. If there is an "
     "AGENTS.md or a CLAUDE.md already, keep what is still right and improve the rest.\n\n"
     "In at most 60 lines say what the project is; the commands that build it, test it (all tests, and one alone), "
     "lint it and run it; the layout, in a few lines; and the conventions that a newcomer would get wrong. Take "
     "commands from the files, or try them; invent nothing. Leave out what every engineer knows and what the code "
     "says by itself."},
    {"review", "reviews the changes in this folder, or those that you name",
     "Review the changes in this workspace: `git diff HEAD` and new files; or, if words follow below, what they name "
     "(a commit, a branch, a range, files). Read the code around each change. Change nothing.\n\n"
     "Report faults, the worst first: wrong behaviour, lost data, holes in security, races, errors that nobody "
     "handles, tests that cannot fail. For each give file and line, the case in which it goes wrong, and a remedy. "
     "Then name what is unclear or more complex than it must be. If you find nothing, say so."},
};

constexpr std::string_view ToString(ProjectInstructions::Kind kind) {
  constexpr std::string_view kNames[] = {"instructions", "skill", "command", "agent"};
  return kNames[static_cast<int>(kind)];
}

constexpr std::string_view ToString(ProjectInstructions::State state) {
  constexpr std::string_view kNames[] = {"used", "new", "changed", "unusable"};
  return kNames[static_cast<int>(state)];
}

}  // namespace reprise
