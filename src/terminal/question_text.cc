#include "terminal/question_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "base/text_edits.h"

namespace reprise {
namespace {

constexpr std::size_t kShownCharacters = 1500, kShownLines = 24, kLabelCharacters = 60;

// The arguments that say most about a call.
constexpr std::array<std::string_view, 6> kFirst{"path", "command", "url", "language", "code", "name"};

struct ArgumentText {
  std::string name, text;
};

// The arguments of a call, texts unquoted and everything else as written, so that no number is rounded. Empty if it is
// no object, or has no members.
std::vector<ArgumentText> InOrder(const std::string& tool_input) {
  const auto parsed = ParseJson(tool_input);
  if (!parsed || !parsed->is_object()) return {};
  std::vector<ArgumentText> arguments;
  for (const auto& [written, value] : RawMembers(tool_input)) {
    const Json name = ParseJson(written).value_or(Json(std::string(written)));
    const Json& read = MemberOf(*parsed, name.get_ref<const std::string&>());
    arguments.push_back({name.get<std::string>(), read.is_string() ? read.get<std::string>() : WithoutGaps(value)});
  }
  std::ranges::stable_sort(arguments, [](const ArgumentText& a, const ArgumentText& b) {
    return std::ranges::find(kFirst, a.name) < std::ranges::find(kFirst, b.name);
  });
  return arguments;
}

std::string_view Beginning(std::string_view text) {
  std::string_view shown = Utf8Prefix(text, kShownCharacters);
  std::size_t lines = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] == '\n' && ++lines == kShownLines) return shown.substr(0, i);
  }
  return shown;
}

std::string Argument(const std::string& name, const std::string& value, bool whole, bool& cut) {
  const std::string text = WithBlankLinesCounted(ToValidUtf8(value));
  std::string_view shown = whole ? std::string_view(text) : Beginning(text);
  std::string line = "  " + VisibleLine(name) + ": ";
  if (shown.find('\n') != std::string_view::npos) line += "\n    ";
  line += VisibleText(shown, "    ") + "\n";
  if (shown.size() < text.size()) {
    cut = true;
    line += "    ... " + Counted(text.size() - shown.size(), "more byte") + "\n";
  }
  return line;
}

tl::unexpected<Error> Wanted(const std::string& what) {
  return Fail(ErrorCode::kInvalidArgument, "this must be " + what);
}

struct Choice {
  Json value;
  std::string title;  // for people; may be empty

  std::string text() const { return value.is_string() ? value.get<std::string>() : DumpJson(value); }
};

// The choices of a schema: of `enum` with `enumNames`, or of `oneOf` or `anyOf` with a `const` and a `title` each.
std::vector<Choice> ChoicesOf(const Json& schema) {
  std::vector<Choice> choices;
  if (const Json& list = MemberOf(schema, "enum"); list.is_array()) {
    const Json& names = MemberOf(schema, "enumNames");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool has_name = names.is_array() && i < names.size() && names[i].is_string();
      choices.push_back({list[i], has_name ? names[i].get<std::string>() : ""});
    }
    return choices;
  }
  for (const char* name : {"oneOf", "anyOf"}) {
    const Json& list = MemberOf(schema, name);
    if (!list.is_array()) continue;
    for (const Json& each : list) {
      if (each.is_object() && each.contains("const")) choices.push_back({each["const"], TextMember(each, "title")});
    }
    break;
  }
  return choices;
}

// The choices of a member, or of the items of a list.
std::vector<Choice> ChoicesOfMember(const Json& schema) {
  return ChoicesOf(TextMember(schema, "type") == "array" ? MemberOf(schema, "items") : schema);
}

// "1. noon (At noon), 2. night"
std::string NumberedChoices(const std::vector<Choice>& choices) {
  std::string list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto& [value, title] = choices[i];
    list += (i == 0 ? "" : ", ") + std::to_string(i + 1) + ". " + VisibleLine(choices[i].text());
    if (!title.empty() && title != choices[i].text()) list += " (" + VisibleLine(title) + ")";
  }
  return list;
}

// The choice that `text` means: itself, its title, or its number; null if none.
const Choice* ChoiceOf(const std::vector<Choice>& choices, const std::string& text) {
  for (const Choice& choice : choices) {
    if (choice.text() == text) return &choice;
  }
  for (const Choice& choice : choices) {
    if (!choice.title.empty() && choice.title == text) return &choice;
  }
  const std::size_t number = ParseNumber<std::size_t>(text).value_or(0);
  return number >= 1 && number <= choices.size() ? &choices[number - 1] : nullptr;
}

// Whether `text` has the form of `pattern`, in which 9 is a digit.
bool LooksLike(std::string_view text, std::string_view pattern) {
  return text.size() == pattern.size() &&
         std::equal(text.begin(), text.end(), pattern.begin(), [](char given, char wanted) {
           return wanted == '9' ? given >= '0' && given <= '9' : given == wanted;
         });
}

bool IsDate(std::string_view text) {
  if (!LooksLike(text, "9999-99-99")) return false;
  const std::string_view month = text.substr(5, 2), day = text.substr(8, 2);
  return month >= "01" && month <= "12" && day >= "01" && day <= "31";
}

bool IsDateTime(std::string_view text) {
  if (text.size() < 20 || !IsDate(text.substr(0, 10)) || (text[10] != 'T' && text[10] != 't')) return false;
  if (!LooksLike(text.substr(11, 8), "99:99:99")) return false;
  std::string_view zone = text.substr(19);
  if (zone.starts_with('.')) zone.remove_prefix(std::min(zone.find_first_not_of("0123456789", 1), zone.size()));
  return zone == "Z" || zone == "z" || LooksLike(zone, "+99:99") || LooksLike(zone, "-99:99");
}

// The expected form of a text in this format, for people; empty if it fits, or if the format is unknown here. Only a
// rough check: the server checks exactly, but its refusal comes after the last field.
std::string FaultOfFormat(std::string_view format, std::string_view text) {
  const bool has_blank = text.find_first_of(" \t\n") != std::string_view::npos;
  if (format == "email") {
    const std::size_t at = text.find('@');
    const bool fits = !has_blank && at != 0 && at != std::string_view::npos && at + 1 < text.size();
    return fits ? "" : "an address like ann@example.org";
  }
  if (format == "uri") {
    const std::size_t colon = text.find(':');
    const bool fits = !has_blank && colon != 0 && colon != std::string_view::npos && colon + 1 < text.size();
    return fits ? "" : "an address like https://example.org/";
  }
  if (format == "date") return IsDate(text) ? "" : "a date like 2025-12-31";
  if (format == "date-time") {
    return IsDateTime(text) ? "" : "a time like 2025-12-31T23:59:00Z";
  }
  return "";
}

std::optional<double> Limit(const Json& schema, const char* name) {
  const Json& limit = MemberOf(schema, name);
  return limit.is_number() ? std::optional(limit.get<double>()) : std::nullopt;
}

// "at least 2 and at most 5 characters"; empty if there are no limits.
std::string LimitsOf(const Json& schema, const char* least, const char* most, const std::string& unit) {
  const Json &low = MemberOf(schema, least), &high = MemberOf(schema, most);
  std::string text;
  if (low.is_number()) text = "at least " + DumpJson(low);
  if (high.is_number()) text += (text.empty() ? "" : " and ") + ("at most " + DumpJson(high));
  return text.empty() ? "" : text + unit;
}

bool IsWithin(const Json& schema, const char* least, const char* most, double value) {
  return value >= Limit(schema, least).value_or(value) && value <= Limit(schema, most).value_or(value);
}

std::string HintOf(const Json& schema, bool required) {
  const std::string type = TextMember(schema, "type");
  std::string hint = type.empty() ? "text" : type == "boolean" ? "yes or no" : VisibleLine(type);
  if (const std::string format = TextMember(schema, "format"); !format.empty()) hint += ", " + VisibleLine(format);
  if (type == "array") hint = "several, with commas";
  if (const auto choices = ChoicesOfMember(schema); !choices.empty()) {
    hint += (type == "array" ? ", of " : ", one of ") + NumberedChoices(choices);
  }
  for (const std::string& limits :
       {LimitsOf(schema, "minLength", "maxLength", " characters"), LimitsOf(schema, "minimum", "maximum", ""),
        LimitsOf(schema, "minItems", "maxItems", " of them")}) {
    if (!limits.empty()) hint += ", " + limits;
  }
  if (const auto usual = schema.find("default"); usual != schema.end())
    hint += ", default " + VisibleLine(DumpJson(*usual));
  if (!required) hint += "; may be left empty";
  std::string words = TextMember(schema, "description");
  if (words.empty()) words = TextMember(schema, "title");
  return (words.empty() ? "" : VisibleLine(words) + " ") + "(" + hint + ")";
}

Result<Json> ParseList(const Json& schema, const std::string& text) {
  const std::vector<Choice> choices = ChoicesOfMember(schema);
  Json list = Json::array();
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    std::string item = text.substr(from, comma - from);
    from = comma + 1;
    item.erase(0, std::min(item.find_first_not_of(' '), item.size()));
    while (item.ends_with(' ')) item.pop_back();
    if (item.empty()) continue;
    const Choice* const choice = ChoiceOf(choices, item);
    if (!choices.empty() && choice == nullptr) return Wanted("of " + NumberedChoices(choices));
    list.push_back(choice == nullptr ? Json(item) : choice->value);
  }
  if (!IsWithin(schema, "minItems", "maxItems", static_cast<double>(list.size()))) {
    return Wanted(LimitsOf(schema, "minItems", "maxItems", " of them"));
  }
  return list;
}

}  // namespace

ApprovalText DescribeApproval(const event::ApprovalRequired& asked, bool whole) {
  const std::string& input = asked.tool_input;
  ApprovalText shown{.text = VisibleLine(asked.tool_name), .cut = false};
  if (!asked.risk.empty()) shown.text += "  (risk: " + VisibleLine(asked.risk) + ")";
  shown.text += "\n";
  const auto arguments = InOrder(input);
  for (const auto& [name, text] : arguments) shown.text += Argument(name, text, whole, shown.cut);
  if (arguments.empty() && input != "{}") shown.text += "  " + VisibleText(input, "  ") + "\n";
  if (!asked.reason.empty()) shown.text += VisibleLine(asked.reason) + "\n";
  return shown;
}

std::vector<std::string> PatternLines(const event::ApprovalRequired& asked) {
  std::vector<std::string> lines;
  for (const CallPattern& each : asked.patterns) {
    if (lines.size() == 9) break;  // one digit is the answer
    lines.push_back(std::to_string(lines.size() + 1) + ". " + VisibleLine(each.pattern) + ": " +
                    VisibleLine(each.means));
  }
  return lines;
}

std::string ApprovalLegend(const ApprovalChoices& offered) {
  std::string legend =
      offered.inside ? "[y]es, [n]o, [a]lways in this chat, [e]dit the arguments" : "[n]o, [e]dit the arguments";
  if (offered.outside) legend += ", [o]utside the sandbox";
  if (offered.patterns > 0) {
    legend += ", [1" + (offered.patterns == 1 ? std::string() : "-" + std::to_string(offered.patterns)) + "] more";
  }
  if (offered.cut) legend += ", [s]how all";
  if (offered.together > 1)
    legend +=
        ", [Y]es or [N]o to all " + std::to_string(offered.together) + (offered.kind.empty() ? "" : " " + offered.kind);
  if (offered.may_be_put_off) legend += ", [l]ater";
  return legend;
}

TypedAnswer ParseApprovalAnswer(std::string_view line) {
  using Kind = TypedAnswer::Kind;
  constexpr std::pair<std::string_view, Kind> kAnswers[] = {
      {"y", Kind::kYes},      {"yes", Kind::kYes},         {"n", Kind::kNo},      {"no", Kind::kNo},
      {"a", Kind::kAlways},   {"e", Kind::kEdit},          {"edit", Kind::kEdit}, {"s", Kind::kShow},
      {"show", Kind::kShow},  {"always", Kind::kAlways},   {"l", Kind::kLater},   {"later", Kind::kLater},
      {"Y", Kind::kYesToAll}, {"N", Kind::kNoToAll},       {"?", Kind::kExplain}, {"A", Kind::kEverywhere},
      {"o", Kind::kOutside},  {"outside", Kind::kOutside},
  };
  for (const auto& [word, kind] : kAnswers) {
    if (line == word) return {.kind = kind, .words = {}};
    if ((kind != Kind::kYes && kind != Kind::kNo) || !line.starts_with(word)) continue;
    // "n use another name", "no, use another name"
    const std::string_view rest = line.substr(word.size());
    for (const std::string_view gap : {", ", " "}) {
      if (rest.starts_with(gap)) return {.kind = kind, .words = std::string(rest.substr(gap.size()))};
    }
  }
  const bool is_everywhere = line.size() == 2 && line.front() == 'A';
  if (is_everywhere) line.remove_prefix(1);
  const bool has_number = !line.empty() && line.front() >= '1' && line.front() <= '9';
  const std::string_view behind = has_number ? line.substr(1) : std::string_view();
  if (has_number && (behind.empty() || behind == " always")) {
    return {.kind = Kind::kPattern,
            .words = {},
            .pattern = static_cast<std::size_t>(line.front() - '0'),
            .in_every_chat = is_everywhere || !behind.empty()};
  }
  return {};
}

std::string EditableArguments(const std::string& tool_input) {
  const auto parsed = ParseJson(tool_input);
  if (!parsed || !parsed->is_object()) return tool_input;
  std::string text;
  bool has_lines = false;
  for (const auto& [written, value] : RawMembers(tool_input)) {
    const Json name = ParseJson(written).value_or(Json(std::string(written)));
    const Json& read = MemberOf(*parsed, name.get_ref<const std::string&>());
    const std::string lines = read.is_string() ? read.get<std::string>() : "";
    text += DumpJson(name) + ": ";
    // Hidden characters stay escapes.
    if (lines.find('\n') == std::string::npos || lines.find('\r') != std::string::npos || HasHidden(lines)) {
      text += OnOneLine(WithoutGaps(value)) + "\n";
      continue;
    }
    has_lines = true;
    std::string end = "END";
    while (("\n" + lines + "\n").find("\n" + end + "\n") != std::string::npos) end += "_";
    text += "<<" + end + "\n" + lines + "\n" + end + "\n";
  }
  if (!has_lines) return tool_input;
  text.pop_back();
  return text;
}

Result<std::string> ArgumentsOf(const std::string& text) {
  const auto wrong = [](const std::string& what) { return Fail(ErrorCode::kInvalidArgument, what); };
  std::string json = text;
  if (const std::size_t first = text.find_first_not_of(" \t\n"); first == std::string::npos || text[first] != '{') {
    json = "{";
    const std::vector<std::string> lines = LinesOf(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].find_first_not_of(" \t") == std::string::npos) continue;
      const std::size_t colon = lines[i].find("\": ");
      if (colon == std::string::npos) return wrong("not of the form \"name\": value: " + VisibleLine(lines[i]));
      std::string value = lines[i].substr(colon + 3);
      if (value.starts_with("<<")) {
        const std::string end = value.substr(2);
        std::string said;
        std::size_t last = i + 1;
        for (; last < lines.size() && lines[last] != end; ++last) said += (last == i + 1 ? "" : "\n") + lines[last];
        if (last == lines.size()) return wrong("the line " + VisibleLine(end) + " is missing");
        value = DumpJson(Json(said));
        json += (json.size() > 1 ? "," : "") + lines[i].substr(0, colon + 2) + value;
        i = last;
        continue;
      }
      json += (json.size() > 1 ? "," : "") + lines[i].substr(0, colon + 2) + value;
    }
    json += "}";
  }
  const auto arguments = ParseJson(json);
  if (!arguments) return wrong("the arguments are " + arguments.error().message);
  if (!arguments->is_object()) return wrong("the arguments must be a JSON object");
  return json;
}

std::optional<std::string> ChangedText(const std::string& tool, const Json& arguments, const std::string& before) {
  if (tool == "write_file") return TextMember(arguments, "content");
  const auto edits = EditsIn(arguments);
  auto edited = edits ? ApplyEdits(before, *edits) : Fail(edits.error());
  return edited ? std::optional(std::move(edited->text)) : std::nullopt;
}

Result<Json> ChangeWithOtherArguments(const Json& change, const event::ApprovalRequired& asked) {
  const auto arguments = ParseJson(asked.tool_input);
  const bool is_patch = asked.tool_name == "apply_patch";
  if (!arguments || is_patch || TextMember(*arguments, "path") != TextMember(change, "path")) {
    return Fail(ErrorCode::kConflict, "it is about another file now");
  }
  const auto after = ChangedText(asked.tool_name, *arguments, TextMember(change, "before"));
  if (!after) return Fail(ErrorCode::kConflict, "it would change nothing");
  Json changed = change;
  changed["after"] = *after;
  return changed;
}

std::string CancelledText(const std::string& reason) {
  if (reason.empty() || reason == "requested") return "(cancelled)";
  constexpr std::pair<std::string_view, std::string_view> kInWords[] = {
      {"client_disconnected", "the client left"},
      {"server_stopping", "the server is stopping"},
      {"chat_deleted", "the chat was deleted"},
      {"replaced", "another message took its place"},
  };
  std::string words = reason;
  for (const auto& [code, meaning] : kInWords) {
    if (reason == code) words = meaning;
  }
  std::ranges::replace(words, '_', ' ');  // of a newer server
  return "(cancelled: " + words + ")";
}

std::string CallLabel(const std::string& tool_name, const std::string& tool_input) {
  std::string label = tool_name;
  if (const auto arguments = InOrder(tool_input); !arguments.empty()) {
    label += " " + Shortened(arguments.front().text, kLabelCharacters);
  }
  return VisibleLine(label);
}

Result<Json> FormField::Parse(const std::string& text) const {
  const std::string type = TextMember(schema, "type");
  if (type == "array") return ParseList(schema, text);
  if (const auto choices = ChoicesOf(schema); !choices.empty()) {
    const Choice* const choice = ChoiceOf(choices, text);
    if (choice == nullptr) return Wanted("one of " + NumberedChoices(choices));
    return choice->value;
  }
  if (type == "boolean") {
    if (text == "y" || text == "yes" || text == "true") return Json(true);
    if (text == "n" || text == "no" || text == "false") return Json(false);
    return Wanted("yes or no");
  }
  if (type == "integer" || type == "number") {
    auto number = ParseJson(text);
    const bool fits = number && (type == "integer" ? number->is_number_integer() : number->is_number());
    if (!fits) return Wanted(type == "integer" ? "a whole number" : "a number");
    if (!IsWithin(schema, "minimum", "maximum", number->get<double>())) {
      return Wanted(LimitsOf(schema, "minimum", "maximum", ""));
    }
    return number;
  }
  const auto length =
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  if (!IsWithin(schema, "minLength", "maxLength", static_cast<double>(length))) {
    return Wanted(LimitsOf(schema, "minLength", "maxLength", " characters"));
  }
  if (const std::string wanted = FaultOfFormat(TextMember(schema, "format"), text); !wanted.empty()) {
    return Wanted(wanted);
  }
  return Json(text);
}

Result<std::optional<Json>> FormField::ParseLine(const std::string& line) const {
  if (!line.empty()) return Parse(line).map([](Json value) { return std::optional(std::move(value)); });
  if (!required || schema.contains("default")) return std::nullopt;
  return Fail(ErrorCode::kInvalidArgument, "this cannot be left empty");
}

std::vector<FormField> FieldsOf(const std::string& schema) {
  const Json json = ParseJson(schema).value_or(Json());
  const Json &properties = MemberOf(json, "properties"), &required = MemberOf(json, "required");
  if (!properties.is_object()) return {};
  std::vector<FormField> fields;
  for (const auto& [name, member] : properties.items()) {
    if (!member.is_object() || TextMember(member, "type") == "object") return {};
    const bool needed = required.is_array() && std::ranges::find(required, Json(name)) != required.end();
    fields.push_back({.name = name, .hint = HintOf(member, needed), .required = needed, .schema = member});
  }
  return fields;
}

std::optional<Json> FillInForm(const std::string& schema, const FormAsking& asking,
                               std::map<std::string, std::string>& entered) {
  Json object = Json::object();
  std::string line;
  const std::vector<FormField> fields = FieldsOf(schema);
  if (fields.empty()) asking.tell("a JSON object of this schema: " + VisibleLine(schema));
  while (fields.empty()) {
    line.clear();
    if (!asking.read("object: ", line)) return std::nullopt;
    if (auto given = ParseJson(line); given && given->is_object()) return *std::move(given);
    asking.complain("this must be a JSON object");
  }
  for (const FormField& field : fields) {
    asking.tell(VisibleLine(field.name) + ": " + field.hint);
    for (;;) {
      line = entered[field.name];
      if (!asking.read(VisibleLine(field.name) + "> ", line)) return std::nullopt;
      auto value = field.ParseLine(line);
      if (value) {
        entered[field.name] = line;
        if (*value) object[field.name] = **std::move(value);
        break;
      }
      asking.complain(value.error().message);
    }
  }
  return object;
}

}  // namespace reprise
