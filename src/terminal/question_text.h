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

// What a person is shown of a question, and what an answer to a form is made of. Everything hidden is spelled out.
namespace reprise {

struct ApprovalText {
  std::string text;
  bool cut;  // a long argument is not shown to its end
};
// The tool and what it touches first, then the other arguments, the risk and the reason.
ApprovalText DescribeApproval(const event::ApprovalRequired& asked, bool whole);

// What may be said to an approval, beside yes and no.
struct ApprovalChoices {
  std::size_t together = 1;  // calls that ask together
  bool cut = false;          // not all of them is shown
  bool may_be_put_off = false;
  std::size_t patterns = 0;  // of calls, that may be allowed
};
// "[y]es, [n]o, ...": the letters that answer.
std::string ApprovalLegend(const ApprovalChoices& offered);

// What a person has typed to it: one of these, or yes or no with `words` behind it, for the model.
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
    kEverywhere,  // the number that follows is for every chat
    kUnclear
  };
  Kind kind = Kind::kUnclear;
  std::string words;
  std::size_t pattern = 0;  // of kPattern: which of those offered, from 1
  bool in_every_chat = false;
};
// The patterns that an approval offers, each with its sentence: "1. git log *: Runs ...".
std::vector<std::string> PatternLines(const event::ApprovalRequired& asked);
TypedAnswer ParseApprovalAnswer(std::string_view line);

// The arguments of a call as a text to edit: JSON on one line, or if one of them has several lines, "name: JSON" for
// each on a line of its own and "name: <<END", the text and "END" for those. REQUIRES: `tool_input` is JSON.
std::string EditableArguments(const std::string& tool_input);
// The JSON object that such a text says; the numbers in it as they are written. kInvalidArgument: the message says what
// is wrong.
Result<std::string> ArgumentsOf(const std::string& text);

// What write_file or edit_file with these arguments would make of a text; nullopt: nothing.
std::optional<std::string> ChangedText(const std::string& tool, const Json& arguments, const std::string& before);
// The answer of GET .../change for a call whose arguments are now those of `asked`. kConflict: it cannot be told.
Result<Json> ChangeWithOtherArguments(const Json& change, const event::ApprovalRequired& asked);

// "write_file a.txt": a call in a few words.
std::string CallLabel(const std::string& tool_name, const std::string& tool_input);

// "(cancelled: REASON)": what has become of a run.
std::string CancelledText(const std::string& reason);

// One member of the object that a question wants as its answer.
struct FormField {
  std::string name;
  std::string hint;  // what to type, for people
  bool required = false;
  Json schema;

  // The value that `text` says. kInvalidArgument: the message says what would have been right.
  Result<Json> Parse(const std::string& text) const;
  // The same of a line that a person has typed; nullopt: it is left out, as one that is not required or has a default
  // may be.
  Result<std::optional<Json>> ParseLine(const std::string& line) const;
};
// Empty if `schema` (JSON text) does not describe an object of simple members.
std::vector<FormField> FieldsOf(const std::string& schema);

// How a person is asked for the members of such an object.
struct FormAsking {
  std::function<void(const std::string&text)> tell, complain;
  // Reads a line, which begins as it is; false: there is no answer.
  std::function<bool(const std::string& prompt, std::string& line)> read;
};
// The object that the schema wants, member by member; nullopt: `read` has given up. `entered`: what was typed, by the
// names of the members; it is there again when the form is filled in anew.
std::optional<Json> FillInForm(const std::string& schema, const FormAsking& asking,
                               std::map<std::string, std::string>& entered);

}  // namespace reprise
