#include "cli/question_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/terminal_text.h"

namespace reprise {
namespace {

constexpr std::size_t kShownCharacters = 1500, kShownLines = 24, kLabelCharacters = 60;

// What tells most about a call.
constexpr std::array<std::string_view, 6> kFirst{"path", "command", "url", "language", "code", "name"};

std::vector<std::string> InOrder(const Json& arguments) {
  std::vector<std::string> names;
  for (const std::string_view name : kFirst) {
    if (arguments.contains(name)) names.emplace_back(name);
  }
  for (const auto& [name, value] : arguments.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string_view Beginning(std::string_view text) {
  std::string_view shown = Utf8Prefix(text, kShownCharacters);
  std::size_t lines = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] == '\n' && ++lines == kShownLines) return shown.substr(0, i);
  }
  return shown;
}

std::string Argument(const std::string& name, const Json& value, bool whole, bool& cut) {
  const std::string text = ToValidUtf8(value.is_string() ? value.get<std::string>() : DumpJson(value));
  std::string_view shown = whole ? std::string_view(text) : Beginning(text);
  std::string line = "  " + VisibleLine(name) + ": ";
  if (shown.find('\n') != std::string_view::npos) line += "\n    ";
  line += VisibleText(shown, "    ") + "\n";
  if (shown.size() < text.size()) {
    cut = true;
    line += "    ... " + std::to_string(text.size() - shown.size()) + " bytes more\n";
  }
  return line;
}

std::string OptionList(const Json& schema) {
  std::string list;
  for (const Json& option : schema) {
    list += (list.empty() ? "" : ", ") + VisibleLine(option.is_string() ? option.get<std::string>() : DumpJson(option));
  }
  return list;
}

tl::unexpected<Error> Wanted(const std::string& what) {
  return Fail(ErrorCode::kInvalidArgument, "this must be " + what);
}

bool IsOption(const Json& options, const std::string& text) {
  return std::any_of(options.begin(), options.end(), [&](const Json& option) { return option == Json(text); });
}

// The values that may be chosen: of `enum`, or of `oneOf` or `anyOf` with a `const` each.
Json ChoicesOf(const Json& schema) {
  if (const auto list = schema.find("enum"); list != schema.end() && list->is_array()) return *list;
  for (const char* name : {"oneOf", "anyOf"}) {
    const auto list = schema.find(name);
    if (list == schema.end() || !list->is_array()) continue;
    Json choices = Json::array();
    for (const Json& each : *list) {
      if (each.is_object() && each.contains("const")) choices.push_back(each["const"]);
    }
    return choices;
  }
  return Json::array();
}

// What people call the choices, as far as the schema says: of `enumNames`, or each one's `title`.
std::vector<std::string> TitlesOf(const Json& schema) {
  std::vector<std::string> titles;
  for (const char* name : {"enumNames", "oneOf", "anyOf"}) {
    const auto list = schema.find(name);
    if (list == schema.end() || !list->is_array()) continue;
    for (const Json& each : *list)
      titles.push_back(each.is_string() ? each.get<std::string>() : TextMember(each, "title"));
    break;
  }
  return titles;
}

// "1. noon (At noon), 2. night"
std::string NumberedChoices(const Json& schema) {
  const Json choices = ChoicesOf(schema);
  const std::vector<std::string> titles = TitlesOf(schema);
  std::string list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::string value = choices[i].is_string() ? choices[i].get<std::string>() : DumpJson(choices[i]);
    list += (i == 0 ? "" : ", ") + std::to_string(i + 1) + ". " + VisibleLine(value);
    if (i < titles.size() && !titles[i].empty() && titles[i] != value) list += " (" + VisibleLine(titles[i]) + ")";
  }
  return list;
}

// The choice that `text` is, itself or by its number; null: none.
const Json* ChoiceOf(const Json& choices, const std::string& text) {
  for (const Json& choice : choices) {
    if (choice == Json(text) || (!choice.is_string() && DumpJson(choice) == text)) return &choice;
  }
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && number >= 1 && number <= choices.size() ? &choices[number - 1] : nullptr;
}

std::optional<double> Limit(const Json& schema, const char* name) {
  const auto limit = schema.find(name);
  return limit != schema.end() && limit->is_number() ? std::optional(limit->get<double>()) : std::nullopt;
}

// "at least 2 and at most 5 characters"; empty: there are no limits.
std::string LimitsOf(const Json& schema, const char* least, const char* most, const std::string& unit) {
  const auto low = schema.find(least), high = schema.find(most);
  std::string text;
  if (low != schema.end() && low->is_number()) text = "at least " + DumpJson(*low);
  if (high != schema.end() && high->is_number()) text += (text.empty() ? "" : " and ") + ("at most " + DumpJson(*high));
  return text.empty() ? "" : text + unit;
}

bool IsWithin(const Json& schema, const char* least, const char* most, double value) {
  return value >= Limit(schema, least).value_or(value) && value <= Limit(schema, most).value_or(value);
}

std::string HintOf(const Json& schema, bool required) {
  const std::string type = TextMember(schema, "type");
  std::string hint = type.empty() ? "text" : type == "boolean" ? "yes or no" : VisibleLine(type);
  if (const std::string format = TextMember(schema, "format"); !format.empty()) hint += ", " + VisibleLine(format);
  Json choices = ChoicesOf(schema);
  if (type == "array" && schema.contains("items")) choices = ChoicesOf(schema["items"]);
  if (type == "array") hint = "several, with commas";
  if (!choices.empty()) hint += type == "array" ? ", of " + OptionList(choices) : ", one of " + NumberedChoices(schema);
  for (const std::string& limits :
       {LimitsOf(schema, "minLength", "maxLength", " characters"), LimitsOf(schema, "minimum", "maximum", "")}) {
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
  const Json choices =
      schema.contains("items") && schema["items"].is_object() ? ChoicesOf(schema["items"]) : Json::array();
  Json list = Json::array();
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    std::string item = text.substr(from, comma - from);
    from = comma + 1;
    item.erase(0, std::min(item.find_first_not_of(' '), item.size()));
    while (item.ends_with(' ')) item.pop_back();
    if (item.empty()) continue;
    if (!choices.empty() && !IsOption(choices, item)) return Wanted("of " + OptionList(choices));
    list.push_back(item);
  }
  return list;
}

}  // namespace

ApprovalText DescribeApproval(const Json& asked, bool whole) {
  const std::string input = TextMember(asked, "tool_input");
  ApprovalText shown{.text = VisibleLine(TextMember(asked, "tool_name")), .cut = false};
  if (const std::string risk = TextMember(asked, "risk"); !risk.empty())
    shown.text += "  (risk: " + VisibleLine(risk) + ")";
  shown.text += "\n";
  const auto arguments = ParseJson(input);
  if (arguments && arguments->is_object()) {
    for (const std::string& name : InOrder(*arguments)) {
      shown.text += Argument(name, (*arguments)[name], whole, shown.cut);
    }
  } else {
    shown.text += "  " + VisibleText(input, "  ") + "\n";
  }
  if (const std::string reason = TextMember(asked, "reason"); !reason.empty()) shown.text += VisibleLine(reason) + "\n";
  return shown;
}

std::string ApprovalLegend(const ApprovalChoices& offered) {
  std::string legend = "[y]es, [n]o, [a]lways in this chat, [e]dit the arguments";
  if (offered.cut) legend += ", [s]how all";
  if (offered.together > 1) legend += ", [Y]es or [N]o to all " + std::to_string(offered.together);
  if (offered.may_be_put_off) legend += ", [l]ater";
  return legend;
}

TypedAnswer ParseApprovalAnswer(std::string_view line) {
  using Kind = TypedAnswer::Kind;
  constexpr std::pair<std::string_view, Kind> kAnswers[] = {
      {"y", Kind::kYes},      {"yes", Kind::kYes},       {"n", Kind::kNo},      {"no", Kind::kNo},
      {"a", Kind::kAlways},   {"e", Kind::kEdit},        {"edit", Kind::kEdit}, {"s", Kind::kShow},
      {"show", Kind::kShow},  {"always", Kind::kAlways}, {"l", Kind::kLater},   {"later", Kind::kLater},
      {"Y", Kind::kYesToAll}, {"N", Kind::kNoToAll},
  };
  for (const auto& [word, kind] : kAnswers) {
    if (line == word) return {kind, {}};
    if ((kind != Kind::kYes && kind != Kind::kNo) || !line.starts_with(word)) continue;
    // "n use another name", "no, use another name"
    const std::string_view rest = line.substr(word.size());
    for (const std::string_view gap : {", ", " "}) {
      if (rest.starts_with(gap)) return {kind, std::string(rest.substr(gap.size()))};
    }
  }
  return {};
}

bool Settles(const std::string& event_name, const Json& data, const std::string& id) {
  if (event_name == "approved" || event_name == "rejected") return TextMember(data, "approval_id") == id;
  if (event_name == "input_received") return TextMember(data, "request_id") == id;
  return event_name == "cancelled" || event_name == "interaction_complete";
}

bool IsNoLongerOpen(const Error& error) {
  return error.reason == "already_processed" || error.reason == "not_found" || error.reason == "no_such_approval" ||
         error.reason == "no_such_request";
}

std::string CallLabel(const std::string& tool_name, const std::string& tool_input) {
  std::string label = tool_name;
  const auto arguments = ParseJson(tool_input);
  if (arguments && arguments->is_object() && !arguments->empty()) {
    const Json& first = (*arguments)[InOrder(*arguments).front()];
    label += " " + Shortened(first.is_string() ? first.get<std::string>() : DumpJson(first), kLabelCharacters);
  }
  return VisibleLine(label);
}

Result<Json> FormField::Parse(const std::string& text) const {
  const std::string type = TextMember(schema, "type");
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
  if (type == "array") return ParseList(schema, text);
  const Json choices = ChoicesOf(schema);
  if (!choices.empty()) {
    const Json* const choice = ChoiceOf(choices, text);
    if (choice == nullptr) return Wanted("one of " + NumberedChoices(schema));
    return *choice;
  }
  const auto length =
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  if (!IsWithin(schema, "minLength", "maxLength", static_cast<double>(length))) {
    return Wanted(LimitsOf(schema, "minLength", "maxLength", " characters"));
  }
  return Json(text);
}

Result<std::optional<Json>> FormField::ParseLine(const std::string& line) const {
  if (!line.empty()) return Parse(line).map([](Json value) { return std::optional(std::move(value)); });
  if (!required || schema.contains("default")) return std::nullopt;
  return Fail(ErrorCode::kInvalidArgument, "this cannot be left empty");
}

std::vector<FormField> FieldsOf(const std::string& schema) {
  const auto json = ParseJson(schema);
  if (!json || !json->is_object()) return {};
  const auto properties = json->find("properties");
  if (properties == json->end() || !properties->is_object()) return {};
  const auto required = json->find("required");
  std::vector<FormField> fields;
  for (const auto& [name, member] : properties->items()) {
    if (!member.is_object() || TextMember(member, "type") == "object") return {};
    const bool needed = required != json->end() && required->is_array() && IsOption(*required, name);
    fields.push_back({.name = name, .hint = HintOf(member, needed), .required = needed, .schema = member});
  }
  return fields;
}

}  // namespace reprise
