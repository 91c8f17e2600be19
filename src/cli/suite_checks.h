#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"
#include "reprise/workspace_change.h"

namespace re2 {
class RE2;
}

// The checks that people write beside a recorded chat: NAME.checks.json for the chat NAME.json, and suite.json for all
// chats of a folder (schemas/checks.schema.json).
//
//   const auto checks = ParseChecks(ReadText("trip.checks.json"), "trip.checks.json");
//   if (!checks) return ComplainOfUse(checks.error());
//   for (const CheckFailure& failure : RunChecks(*checks, interaction, 1, content_of)) Warn(failure.message);

namespace reprise {

class ArgumentSchema;

// What a text must be. A pattern may match anywhere in it; a schema is for the JSON value that the text is.
struct TextCheck {
  enum class Kind { kEquals, kContains, kMatches, kSchema };
  Kind kind = Kind::kEquals;
  std::string text{};                              // the expected text, its part, or the pattern
  std::shared_ptr<const re2::RE2> pattern{};       // set for kMatches
  std::shared_ptr<const ArgumentSchema> schema{};  // set for kSchema
};

// A part of a JSON value; see CallCheck::arguments.
struct ValueCheck;

struct CallCheck {
  std::string name;
  // Members that the arguments must have, on each level; null: any arguments.
  std::shared_ptr<const ValueCheck> arguments{};
};

struct CallsCheck {
  enum class Mode {
    kExact,    // these calls in this order, and no others
    kInOrder,  // in this order, perhaps with others between them
    kSubset,   // in any order; each entry needs a call of its own
  };
  Mode mode = Mode::kSubset;
  std::vector<CallCheck> list{};
};

struct FileCheck {
  enum class Kind { kChanged, kAbsent, kContent };
  std::string path;
  Kind kind = Kind::kChanged;
  TextCheck content{};  // for kContent
};

// Upper limits; nullopt: none.
struct MaxCheck {
  std::optional<std::int64_t> rounds{}, calls{}, input_tokens{}, output_tokens{};
  std::optional<double> seconds{};  // from the message to the end of the turn, waiting for people included
  std::optional<double> cost{};     // in the currency of the configured prices
};

// A program that gets the turn as JSON and exits with 0 if it is good.
struct CommandCheck {
  std::vector<std::string> argv;
  double seconds = 60;  // that it may take
};

struct JudgeCheck {
  std::string model, question;
};

// A check with a model must pass in `passed` of `times` runs.
struct AtLeast {
  std::int64_t passed = 1, times = 1;
};

struct TurnChecks {
  std::optional<CallsCheck> calls{};
  std::vector<CallCheck> never{};
  std::optional<TextCheck> answer{};
  std::vector<FileCheck> files{};
  MaxCheck max{};
  // These need a run with a model; RunChecks leaves them alone.
  std::optional<CommandCheck> command{};
  std::optional<JudgeCheck> judge{};
  std::optional<AtLeast> at_least{};
};

struct SuiteChecks {
  TurnChecks every{};                         // of every turn
  std::map<std::string, TurnChecks> turns{};  // of one more, by its id ("int_002") or its number ("1": the first)
};

// Reads a file of checks (JSON with comments, at most 1 MiB). kInvalidArgument; the message begins with `file` and the
// path of the fault in it: "a.checks.json: /answer/matches: this is no RE2 pattern: missing )".
Result<SuiteChecks> ParseChecks(std::string_view json, const std::string& file);

struct CheckFailure {
  std::string check;    // the member of the file: "answer"
  std::string message;  // one sentence, with quoted text from models and tools: make it visible before printing
};

// The content of a workspace file; nullopt if it is not at hand. May be null: no content is.
using ContentOf = std::function<std::optional<std::string>(const FileVersion& version)>;

// Holds the recorded turn against its checks; `number` counts turns from 1. `cost`: of the turn; nullopt: unknown. What
// cannot be found out fails.
std::vector<CheckFailure> RunChecks(const SuiteChecks& checks, const Interaction& turn, std::size_t number,
                                    const ContentOf& content_of, std::optional<double> cost);

// The turn's checks that need a run with a model: "command", "judge", "at_least".
std::vector<std::string> ChecksForModel(const SuiteChecks& checks, const Interaction& turn, std::size_t number);

// The checks of a turn, as far as runs with a model are concerned.
struct LiveChecks {
  bool any = false;  // there is a check that can pass or fail
  std::vector<CommandCheck> commands{};
  std::vector<JudgeCheck> judges{};
  std::optional<AtLeast> at_least{};  // the most particular one
};
LiveChecks LiveChecksOf(std::span<const SuiteChecks> checks, const InteractionId& turn, std::size_t number);

// Names in SuiteChecks::turns that stand for none of these turns, which are in their order.
std::vector<std::string> UnknownTurns(const SuiteChecks& checks, std::span<const InteractionId> turns);

}  // namespace reprise
