#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/check_values.h"
#include "cli/suite_checks.h"
#include "tools/arguments.h"

namespace reprise {
namespace {

constexpr std::size_t kMostCheckBytes = 1024 * 1024;
constexpr std::size_t kMostEntries = 1000;
constexpr std::int64_t kMostTimes = 1000;
constexpr double kMostNumber = 1e15, kMostSeconds = 3600;

using Names = std::vector<std::string>;

const Names kTextMembers = {"equals", "contains", "matches"};
const Names kTurnMembers = {"calls", "never", "answer", "files", "max", "command", "judge", "at_least"};

// The keywords that a schema may have, by what they hold. The validator would skip unknown ones without a word; for
// patterns, formats, references and uniqueItems its time or its stack would depend on what a model has written.
const Names kSubschemas = {"items",         "additionalItems",
                           "contains",      "additionalProperties",
                           "propertyNames", "allOf",
                           "anyOf",         "oneOf",
                           "not",           "if",
                           "then",          "else"};
const Names kSchemaValues = {"$schema",          "$comment", "title",     "description",   "default",
                             "examples",         "type",     "enum",      "const",         "required",
                             "minimum",          "maximum",  "minLength", "maxLength",     "multipleOf",
                             "exclusiveMinimum", "minItems", "maxItems",  "minProperties", "maxProperties",
                             "exclusiveMaximum"};

bool Has(const Names& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

Names Together(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

// "a, b or c"
std::string Choice(const Names& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

// A place below another, as a JSON pointer (RFC 6901).
std::string Below(const std::string& at, std::string_view member) {
  std::string place = at + "/";
  for (const char c : Shortened(member, 80)) c == '~' ? place += "~0" : c == '/' ? place += "~1" : place += c;
  return place;
}
std::string Below(const std::string& at, std::size_t index) { return Below(at, std::to_string(index)); }

// Reads one file. Places are JSON pointers.
class CheckReader {
 public:
  explicit CheckReader(const std::string& file) : file_(file) {}

  Result<SuiteChecks> Read(const Json& root) const {
    TRY(CheckMembers(root, "", Together(kTurnMembers, {"$schema", "turns"})));
    SuiteChecks checks{.every = TRY(ReadTurn(root, ""))};
    if (!root.contains("turns")) return checks;
    const std::string at = "/turns";
    TRY(CheckEntries(root["turns"], at, /*object=*/true));
    for (const auto& [name, turn] : root["turns"].items()) {
      const std::string below = Below(at, name);
      const auto number = ParseNumber<std::uint32_t>(name);
      const bool is_number = number && *number > 0 && std::to_string(*number) == name;
      if (!is_number && !InteractionId::Parse(name)) {
        return Reject(below, "a turn is named by its id, such as int_002, or by its number, such as 1");
      }
      TRY(CheckMembers(turn, below, kTurnMembers));
      checks.turns[name] = TRY(ReadTurn(turn, below));
    }
    return checks;
  }

  tl::unexpected<Error> Reject(const std::string& at, const std::string& why) const {
    return Fail(ErrorCode::kInvalidArgument, file_ + ": " + at + (at.empty() ? "" : ": ") + why);
  }

 private:
  // Whether it is an object that says something, and only what is known.
  Result<void> CheckMembers(const Json& value, const std::string& at, const Names& known) const {
    if (!value.is_object()) return Reject(at, "must be an object");
    for (const auto& [name, member] : value.items()) {
      if (Has(known, name)) continue;
      return Reject(Below(at, name), "there is no such member" + DidYouMean(name, known));
    }
    if (value.empty() || (value.size() == 1 && value.contains("$schema"))) return Reject(at, "must not be empty");
    return {};
  }

  // The same for objects with one of these members.
  Result<std::string> OneOf(const Json& value, const std::string& at, const Names& known) const {
    TRY(CheckMembers(value, at, known));
    if (value.size() != 1) return Reject(at, "must have only one member: " + Choice(known));
    return value.begin().key();
  }

  Result<void> CheckEntries(const Json& value, const std::string& at, bool object = false) const {
    if (object ? !value.is_object() : !value.is_array())
      return Reject(at, object ? "must be an object" : "must be a list");
    if (value.empty()) return Reject(at, "must not be empty");
    if (value.size() > kMostEntries) return Reject(at, "has more than " + Grouped(kMostEntries) + " entries");
    return {};
  }

  Result<std::string> ReadText(const Json& value, const std::string& at) const {
    if (!value.is_string()) return Reject(at, "must be a text");
    if (value.get_ref<const std::string&>().empty()) return Reject(at, "must not be empty");
    return value.get<std::string>();
  }

  Result<std::shared_ptr<const re2::RE2>> ReadPattern(const Json& value, const std::string& at) const {
    auto pattern = CompilePattern(TRY(ReadText(value, at)));
    if (!pattern->ok()) return Reject(at, "this is no RE2 pattern: " + pattern->error());
    return pattern;
  }

  Result<TextCheck> ReadTextCheck(const std::string& kind, const Json& value, const std::string& at) const {
    if (kind == "schema") return ReadSchema(value, at);
    if (kind == "matches") {
      auto pattern = TRY(ReadPattern(value, at));
      return TextCheck{.kind = TextCheck::Kind::kMatches, .text = pattern->pattern(), .pattern = std::move(pattern)};
    }
    if (kind == "contains") {
      auto text = TRY(ReadText(value, at));
      return TextCheck{.kind = TextCheck::Kind::kContains, .text = std::move(text)};
    }
    if (!value.is_string()) return Reject(at, "must be a text");
    return TextCheck{.kind = TextCheck::Kind::kEquals, .text = value.get<std::string>()};
  }

  Result<TextCheck> ReadSchema(const Json& value, const std::string& at) const {
    if (!value.is_object()) return Reject(at, "must be a JSON Schema, an object");
    TextCheck check{.kind = TextCheck::Kind::kSchema};
    TRY(CheckSchema(value, at));
    auto schema = ArgumentSchema::Compile(DumpJson(value), SchemaSubject::kAnswer);
    if (!schema) return Reject(at, "this is no JSON Schema (draft-07): " + schema.error().detail);
    check.schema = *std::move(schema);
    return check;
  }

  Result<void> CheckSchema(const Json& schema, const std::string& at) const {
    if (schema.is_boolean()) return {};
    if (!schema.is_object()) return Reject(at, "must be a JSON Schema, an object");
    for (const auto& [keyword, value] : schema.items()) {
      const std::string below = Below(at, keyword);
      if (keyword == "properties") {
        if (!value.is_object()) return Reject(below, "must be an object");
        for (const auto& [name, member] : value.items()) TRY(CheckSchema(member, Below(below, name)));
      } else if (Has(kSubschemas, keyword) && value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) TRY(CheckSchema(value[i], Below(below, i)));
      } else if (Has(kSubschemas, keyword)) {
        TRY(CheckSchema(value, below));
      } else if (!Has(kSchemaValues, keyword)) {
        const Names known = Together(Together(kSchemaValues, kSubschemas), {"properties"});
        return Reject(below, "a schema for answers cannot have this keyword" + DidYouMean(keyword, known));
      } else if (keyword == "multipleOf" && !(value.is_number() && value.get<double>() > 0)) {
        return Reject(below, "must be a number above 0");
      }
    }
    return {};
  }

  // An object with only "matches" is a pattern; other objects name members.
  Result<ValueCheck> ReadValue(const Json& value, const std::string& at) const {
    ValueCheck check;
    if (value.is_object() && value.size() == 1 && value.contains("matches")) {
      check.pattern = TRY(ReadPattern(value["matches"], Below(at, "matches")));
    } else if (value.is_object()) {
      check.kind = ValueCheck::Kind::kMembers;
      for (const auto& [name, member] : value.items()) {
        check.names.push_back(name);
        check.parts.push_back(TRY(ReadValue(member, Below(at, name))));
      }
    } else if (value.is_array()) {
      check.kind = ValueCheck::Kind::kElements;
      for (std::size_t i = 0; i < value.size(); ++i) check.parts.push_back(TRY(ReadValue(value[i], Below(at, i))));
    }
    check.value = value;
    return check;
  }

  Result<std::string> ReadToolName(const Json& value, const std::string& at) const {
    std::string name = TRY(ReadText(value, at));
    if (std::ranges::all_of(name, IsToolNameCharacter)) return name;
    return Reject(at, "is the name of no tool: those have letters, digits, _ and - only");
  }

  Result<CallCheck> ReadCall(const Json& value, const std::string& at) const {
    TRY(CheckMembers(value, at, {"name", "arguments"}));
    if (!value.contains("name")) return Reject(at, "must have a member name: the name of a tool");
    CallCheck call{.name = TRY(ReadToolName(value["name"], Below(at, "name")))};
    if (!value.contains("arguments")) return call;
    const std::string below = Below(at, "arguments");
    if (!value["arguments"].is_object()) return Reject(below, "must be an object");
    call.arguments = std::make_shared<const ValueCheck>(TRY(ReadValue(value["arguments"], below)));
    return call;
  }

  Result<CallsCheck> ReadCalls(const Json& value, const std::string& at) const {
    static const Names kModes = {"exact", "in_order", "subset"};
    TRY(CheckMembers(value, at, {"mode", "list"}));
    CallsCheck calls;
    if (value.contains("mode")) {
      const std::string below = Below(at, "mode");
      const std::string mode = TRY(ReadText(value["mode"], below));
      if (!Has(kModes, mode)) return Reject(below, "must be " + Choice(kModes) + DidYouMean(mode, kModes));
      calls.mode = static_cast<CallsCheck::Mode>(std::ranges::find(kModes, mode) - kModes.begin());
    }
    if (!value.contains("list")) return Reject(at, "must have a member list: the expected calls");
    const Json& list = value["list"];
    const std::string below = Below(at, "list");
    if (list.is_array() && list.empty() && calls.mode == CallsCheck::Mode::kExact) return calls;
    if (list.is_array() && list.empty()) return Reject(below, "is empty; to allow no call at all, the mode is exact");
    TRY(CheckEntries(list, below));
    for (std::size_t i = 0; i < list.size(); ++i) calls.list.push_back(TRY(ReadCall(list[i], Below(below, i))));
    return calls;
  }

  Result<std::vector<CallCheck>> ReadNever(const Json& value, const std::string& at) const {
    TRY(CheckEntries(value, at));
    std::vector<CallCheck> never;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string below = Below(at, i);
      never.push_back(value[i].is_string() ? CallCheck{.name = TRY(ReadToolName(value[i], below))}
                                           : TRY(ReadCall(value[i], below)));
    }
    return never;
  }

  Result<std::vector<FileCheck>> ReadFiles(const Json& value, const std::string& at) const {
    TRY(CheckEntries(value, at, /*object=*/true));
    std::vector<FileCheck> files;
    for (const auto& [path, wanted] : value.items()) {
      const std::string below = Below(at, path);
      const std::string inside = "/" + path + "/";
      if (path.empty() || inside.find("//") != std::string::npos || inside.find("/../") != std::string::npos ||
          inside.find("/./") != std::string::npos) {
        return Reject(below, "must be a path in the workspace, such as src/main.c");
      }
      const std::string kind = TRY(OneOf(wanted, below, Together(kTextMembers, {"absent", "changed"})));
      const std::string place = Below(below, kind);
      FileCheck file{.path = path};
      if (kind == "absent" || kind == "changed") {
        if (wanted[kind] != true) return Reject(place, "must be true");
        file.kind = kind == "absent" ? FileCheck::Kind::kAbsent : FileCheck::Kind::kChanged;
      } else {
        file.kind = FileCheck::Kind::kContent;
        file.content = TRY(ReadTextCheck(kind, wanted[kind], place));
      }
      files.push_back(std::move(file));
    }
    return files;
  }

  Result<MaxCheck> ReadMax(const Json& value, const std::string& at) const {
    TRY(CheckMembers(value, at, {"rounds", "calls", "input_tokens", "output_tokens", "seconds", "cost"}));
    MaxCheck max;
    for (const auto& [name, limit] : value.items()) {
      const std::string below = Below(at, name);
      const bool is_decimal = name == "seconds" || name == "cost";
      if (is_decimal ? !limit.is_number() : !limit.is_number_integer()) {
        return Reject(below, is_decimal ? "must be a number" : "must be a whole number");
      }
      const double number = limit.get<double>();
      if (number < 0 || number > kMostNumber) return Reject(below, "must be from 0 to 10^15");
      if (is_decimal) {
        (name == "cost" ? max.cost : max.seconds) = number;
        continue;
      }
      auto& member = name == "rounds"         ? max.rounds
                     : name == "calls"        ? max.calls
                     : name == "input_tokens" ? max.input_tokens
                                              : max.output_tokens;
      member = limit.get<std::int64_t>();
    }
    return max;
  }

  Result<JudgeCheck> ReadJudge(const Json& value, const std::string& at) const {
    TRY(CheckMembers(value, at, {"model", "question"}));
    for (const char* name : {"model", "question"}) {
      if (!value.contains(name)) return Reject(at, std::string("must have a member ") + name);
    }
    auto model = TRY(ReadText(value["model"], Below(at, "model")));
    auto question = TRY(ReadText(value["question"], Below(at, "question")));
    return JudgeCheck{.model = std::move(model), .question = std::move(question)};
  }

  Result<AtLeast> ReadAtLeast(const Json& value, const std::string& at) const {
    const std::string text = TRY(ReadText(value, at));
    const std::size_t slash = std::min(text.find('/'), text.size());
    const auto passed = ParseNumber<std::int64_t>(std::string_view(text).substr(0, slash));
    const auto times = ParseNumber<std::int64_t>(std::string_view(text).substr(std::min(slash + 1, text.size())));
    const bool is_plain = passed && times && std::to_string(*passed) + "/" + std::to_string(*times) == text;
    if (!is_plain || *passed < 1 || *passed > *times || *times > kMostTimes) {
      return Reject(at, "must be passes and runs, such as 4/5, with at most " + Grouped(kMostTimes) + " runs");
    }
    return AtLeast{.passed = *passed, .times = *times};
  }

  // The program and its arguments, or an object with them as `argv`.
  Result<CommandCheck> ReadCommand(const Json& value, const std::string& at) const {
    CommandCheck command;
    if (value.is_object()) {
      TRY(CheckMembers(value, at, {"argv", "seconds"}));
      const Json& seconds = MemberOf(value, "seconds");
      const bool is_limit = seconds.is_number() && seconds.get<double>() > 0 && seconds.get<double>() <= kMostSeconds;
      if (!seconds.is_null() && !is_limit) return Reject(Below(at, "seconds"), "must be more than 0 and at most 3,600");
      if (is_limit) command.seconds = seconds.get<double>();
    }
    const Json& argv = value.is_object() ? MemberOf(value, "argv") : value;
    const std::string place = value.is_object() ? Below(at, "argv") : at;
    TRY(CheckEntries(argv, place));
    for (std::size_t i = 0; i < argv.size(); ++i) {
      if (!argv[i].is_string()) return Reject(Below(place, i), "must be a text");
      command.argv.push_back(argv[i].get<std::string>());
      if (command.argv.back().find('\0') != std::string::npos) return Reject(Below(place, i), "must not hold a NUL");
    }
    if (command.argv[0].empty()) return Reject(Below(place, 0), "must be a program");
    return command;
  }

  // REQUIRES: `value` has passed CheckMembers.
  Result<TurnChecks> ReadTurn(const Json& value, const std::string& at) const {
    TurnChecks turn;
    for (const auto& [name, check] : value.items()) {
      const std::string below = Below(at, name);
      if (name == "calls") turn.calls = TRY(ReadCalls(check, below));
      if (name == "never") turn.never = TRY(ReadNever(check, below));
      if (name == "files") turn.files = TRY(ReadFiles(check, below));
      if (name == "max") turn.max = TRY(ReadMax(check, below));
      if (name == "command") turn.command = TRY(ReadCommand(check, below));
      if (name == "judge") turn.judge = TRY(ReadJudge(check, below));
      if (name == "at_least") turn.at_least = TRY(ReadAtLeast(check, below));
      if (name != "answer") continue;
      const std::string kind = TRY(OneOf(check, below, Together(kTextMembers, {"schema"})));
      turn.answer = TRY(ReadTextCheck(kind, check[kind], Below(below, kind)));
    }
    return turn;
  }

  const std::string& file_;
};

}  // namespace

Result<SuiteChecks> ParseChecks(std::string_view json, const std::string& file) {
  const CheckReader reader(file);
  if (json.size() > kMostCheckBytes) return reader.Reject("", "is larger than 1 MiB");
  const auto root = ParseJsonWithComments(json);
  if (!root) return reader.Reject("", root.error().message);
  return reader.Read(*root);
}

}  // namespace reprise
