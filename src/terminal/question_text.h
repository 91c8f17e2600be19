#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "reprise/event.h"
#include "reprise/result.h"

// Texts of questions for people, and answers to forms. Hidden characters are spelled out.
namespace reprise {

struct ApprovalText {
  std::string text;
  bool cut;  // a long argument is cut
};
// First the tool and its main argument, then the other arguments, the risk and the reason.
ApprovalText DescribeApproval(const event::ApprovalRequired& asked, bool whole);

// What the answer "outside" means, for people.
inline constexpr const char* kOutsideMeans =
    "Outside the sandbox (o), for this one call, it reaches all your files, the network and your secrets.";

// The possible answers to an approval, beside yes and no.
struct ApprovalChoices {
  std::size_t together = 1;  // calls that ask together
  std::string kind{};        // what these are, if other questions are open beside them
  bool cut = false;          // the arguments were cut
  bool may_be_put_off = false;
  std::size_t patterns = 0;  // patterns of calls that may be allowed
  bool inside = true;        // the call may be allowed as any other
  bool outside = false;      // the call may be allowed to run outside the sandbox
};
// "[y]es, [n]o, ...": the letters of the answers.
std::string ApprovalLegend(const ApprovalChoices& offered);

// A typed answer: one of these kinds, or yes or no followed by `words` for the model.
struct TypedAnswer {
  enum class Kind {
    kYes,
    kNo,
    kAlways,
    kEdit,
    kShow,
    kExplain,
    kLater,
    kYesToAll,
    kNoToAll,
    kPattern,
    kOutside,     // yes, outside the sandbox
    kEverywhere,  // the number that follows is for every chat
    kUnclear
  };
  Kind kind = Kind::kUnclear;
  std::string words;
  std::size_t pattern = 0;  // of kPattern: the number of an offered pattern, from 1
  bool in_every_chat = false;
};
// The patterns that an approval offers, each with its meaning: "1. git log *: Runs ...".
std::vector<std::string> PatternLines(const event::ApprovalRequired& asked);
TypedAnswer ParseApprovalAnswer(std::string_view line);

// A call's arguments as an editable text: JSON on one line, or, if one of them has several lines, a line "name: JSON"
// for each, and for those "name: <<END", the text and "END". REQUIRES: `tool_input` is JSON.
std::string EditableArguments(const std::string& tool_input);
// The JSON object of such a text, with its numbers as written. kInvalidArgument; the message names the fault.
Result<std::string> ArgumentsOf(const std::string& text);

// The effect of write_file or edit_file with these arguments on a text; nullopt if there is none.
std::optional<std::string> ChangedText(const std::string& tool, const Json& arguments, const std::string& before);
// GET .../change, adapted to the changed arguments in `asked`. kConflict if the effect is unknown.
Result<Json> ChangeWithOtherArguments(const Json& change, const event::ApprovalRequired& asked);

// "write_file a.txt": a call in a few words.
std::string CallLabel(const std::string& tool_name, const std::string& tool_input);

// "(cancelled: REASON)": the end of a run.
std::string CancelledText(const std::string& reason);

// One member of the object that answers a question.
struct FormField {
  std::string name;
  std::string hint;  // what to type, for people
  bool required = false;
  Json schema;

  // The value of `text`. kInvalidArgument; the message says what is expected.
  Result<Json> Parse(const std::string& text) const;
  // The same for a typed line; nullopt leaves the member out, if it is optional or has a default.
  Result<std::optional<Json>> ParseLine(const std::string& line) const;
};
// Empty if `schema` (JSON text) does not describe an object of simple members.
std::vector<FormField> FieldsOf(const std::string& schema);

// The functions that ask a person for the members of such an object.
struct FormAsking {
  std::function<void(const std::string&text)> tell, complain;
  // Reads a line that begins with the present `line`; false if there is no answer.
  std::function<bool(const std::string& prompt, std::string& line)> read;
};
// Asks for the object of the schema, member by member; nullopt if `read` gave up. `entered` keeps the typed lines by
// member, for another attempt.
std::optional<Json> FillInForm(const std::string& schema, const FormAsking& asking,
                               std::map<std::string, std::string>& entered);

}  // namespace reprise
