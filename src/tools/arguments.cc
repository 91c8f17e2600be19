// Without it a bad schema aborts the process instead of throwing.
#define VALIJSON_USE_EXCEPTIONS 1
#include "tools/arguments.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {

struct Arguments::Object {
  Json json = Json::object();
};

Arguments::Arguments(std::string_view text) : object_(std::make_unique<Object>()) {
  if (auto json = ParseJson(text); json && json->is_object()) object_->json = std::move(*json);
}

Arguments::~Arguments() = default;

std::optional<std::string> Arguments::String(std::string_view name) const {
  const Json& member = MemberOf(object_->json, name);
  return member.is_string() ? std::optional(member.get<std::string>()) : std::nullopt;
}

std::optional<bool> Arguments::Boolean(std::string_view name) const {
  const Json& member = MemberOf(object_->json, name);
  return member.is_boolean() ? std::optional(member.get<bool>()) : std::nullopt;
}

std::vector<std::string> Arguments::Strings(std::string_view name) const {
  std::vector<std::string> strings;
  const Json& member = MemberOf(object_->json, name);
  if (!member.is_array()) return strings;
  for (const Json& each : member) {
    if (each.is_string()) strings.push_back(each.get<std::string>());
  }
  return strings;
}

std::optional<std::int64_t> Arguments::Integer(std::string_view name) const {
  const Json& member = MemberOf(object_->json, name);
  if (!member.is_number()) return std::nullopt;
  // Converting a double that does not fit would be undefined.
  constexpr double kLimit = 9.0e18;
  if (!member.is_number_integer() && std::abs(member.get<double>()) > kLimit) return std::nullopt;
  return member.get<std::int64_t>();
}

namespace {

using PlainJson = nlohmann::json;
using valijson::adapters::NlohmannJsonAdapter;
using SchemaError = valijson::ValidationResults::Error;

constexpr std::size_t kMaxArgumentBytes = 1024 * 1024;
constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53
constexpr std::size_t kMaxReported = 5;
constexpr std::size_t kMaxCompared = 100;  // of the library's errors, which can be as many as elements

// JSON Schema calls 1.0 an integer; the library does not.
void MakeWholeNumbersIntegers(PlainJson& value) {
  if (value.is_structured()) {
    for (auto& element : value) MakeWholeNumbersIntegers(element);
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kMaxExactInteger) value = static_cast<std::int64_t>(number);
  }
}

// The words for an object and its members in messages.
struct Words {
  Reason reason;
  const char *object, *member, *members;
  bool any_value = false;  // instead of an object
};
constexpr Words kOfArguments{Reason::kInvalidArguments, "arguments", "argument", "Arguments of this tool"};
constexpr Words kOfForm{Reason::kInvalidResponse, "response", "field", "Fields"};
constexpr Words kOfAnswer{Reason::kInvalidArguments, "answer", "member", "Members", /*any_value=*/true};

Error Unusable(const Words& words, std::string message, ErrorCode code = ErrorCode::kInvalidArgument) {
  return {.code = code, .reason = std::string(NameOf(words.reason)), .message = std::move(message)};
}

bool IsProperPrefix(const std::vector<std::string>& prefix, const std::vector<std::string>& path) {
  return prefix.size() < path.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

// The library adds an entry for each object around a fault; only the innermost says what to fix.
std::vector<SchemaError> Innermost(const std::vector<SchemaError>& errors) {
  std::vector<SchemaError> innermost;
  std::ranges::copy_if(errors, std::back_inserter(innermost), [&](const SchemaError& error) {
    return std::ranges::none_of(errors,
                                [&](const SchemaError& other) { return IsProperPrefix(error.context, other.context); });
  });
  return innermost;
}

// "<root>", "[steps]", "[0]" -> "steps[0]".
std::string MemberPath(const std::vector<std::string>& context) {
  std::string path;
  for (std::size_t i = 1; i < context.size(); ++i) {
    const std::string& step = context[i];
    if (step.size() < 3) continue;
    const std::string name = step.substr(1, step.size() - 2);
    const bool is_index = std::ranges::all_of(name, IsAsciiDigit);
    path += is_index ? step : (path.empty() ? "" : ".") + name;
  }
  return path;
}

// The part of the schema that describes the member at `context`, or null.
const PlainJson* SchemaOf(const PlainJson& schema, const std::vector<std::string>& context) {
  const PlainJson* at = &schema;
  for (std::size_t i = 1; i < context.size(); ++i) {
    const std::string name = context[i].size() < 3 ? "" : context[i].substr(1, context[i].size() - 2);
    if (at->contains("properties") && (*at)["properties"].contains(name)) {
      at = &(*at)["properties"][name];
    } else if (at->contains("items") && (*at)["items"].is_object()) {
      at = &(*at)["items"];
    } else {
      return nullptr;
    }
  }
  return at;
}

std::string Described(const SchemaError& error, const PlainJson& schema, const Words& words) {
  const std::string path = MemberPath(error.context);
  std::string text = path.empty() ? "" : "\"" + path + "\": ";
  const PlainJson* expected = SchemaOf(schema, error.context);
  if (error.description.find("'type' constraint") != std::string::npos && expected != nullptr &&
      expected->contains("type")) {
    return text + "must be of type " + (*expected)["type"].dump();
  }
  if (error.description.find("enum") != std::string::npos && expected != nullptr && expected->contains("enum")) {
    return text + "must be one of " + (*expected)["enum"].dump();
  }
  static constexpr std::string_view kUnwanted = "'additionalProperties' constraints: ";
  if (const auto at = error.description.find(kUnwanted); at != std::string::npos) {
    return text + "there is no " + words.member + " " + error.description.substr(at + kUnwanted.size());
  }
  return text + error.description;
}

// "path (string, required), limit (integer)".
std::string Signature(const PlainJson& schema) {
  std::string text;
  const PlainJson required = schema.value("required", PlainJson::array());
  const PlainJson properties = schema.value("properties", PlainJson::object());
  for (const auto& [name, member] : properties.items()) {
    const bool needed = std::find(required.begin(), required.end(), name) != required.end();
    const PlainJson type = member.value("type", PlainJson("any"));
    text += (text.empty() ? "" : ", ") + name + " (" + (type.is_string() ? type.get<std::string>() : type.dump()) +
            (needed ? ", required)" : ")");
  }
  return text.empty() ? "none" : text;
}

std::string Explanation(const std::vector<SchemaError>& errors, const PlainJson& schema, const Words& words) {
  std::vector<std::string> lines;
  for (const SchemaError& error : Innermost(errors)) {
    std::string line = Described(error, schema, words);
    while (!line.empty() && line.back() == '.') line.pop_back();
    if (lines.size() < kMaxReported && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  if (lines.empty()) lines.emplace_back("the schema does not allow it");  // the library is silent, as for propertyNames
  std::string text = std::string("invalid ") + words.object + ": ";
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "; ") + lines[i];
  if (words.any_value) return text + ".";
  return text + ". " + words.members + ": " + Signature(schema) + ".";
}

}  // namespace

struct ArgumentSchema::Impl {
  PlainJson text;
  valijson::Schema schema;
  const Words* words = &kOfArguments;
};

ArgumentSchema::ArgumentSchema(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArgumentSchema::~ArgumentSchema() = default;

Result<std::unique_ptr<ArgumentSchema>> ArgumentSchema::Compile(std::string_view schema, SchemaSubject subject) {
  auto parsed = TRY(ParseJson(schema));
  if (!parsed.is_object()) return Fail(ErrorCode::kInvalidArgument, "a schema must be a JSON object");
  auto impl = std::make_unique<Impl>();
  if (subject == SchemaSubject::kForm) impl->words = &kOfForm;
  if (subject == SchemaSubject::kAnswer) impl->words = &kOfAnswer;
  impl->text = parsed;
  try {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(NlohmannJsonAdapter(impl->text), impl->schema);
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInvalidArgument, "not a JSON Schema that can be checked", error.what());
  }
  return std::unique_ptr<ArgumentSchema>(new ArgumentSchema(std::move(impl)));
}

Result<void> ArgumentSchema::Check(std::string_view arguments) const {
  const Words& words = *impl_->words;
  const std::string object = words.object;
  if (arguments.size() > kMaxArgumentBytes) {
    return Fail(Unusable(words, "the " + object + " must not be larger than 1 MiB", ErrorCode::kTooLarge));
  }
  auto parsed = ParseJson(arguments.empty() && !words.any_value ? "{}" : arguments);
  if (!parsed) return Fail(Unusable(words, "the " + object + " cannot be used: " + parsed.error().message));
  if (!parsed->is_object() && !words.any_value) {
    return Fail(Unusable(words, "the " + object + " must be a JSON object, such as {\"name\": \"value\"}. " +
                                    words.members + ": " + Signature(impl_->text) + "."));
  }
  PlainJson value = *parsed;
  MakeWholeNumbersIntegers(value);
  try {
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(impl_->schema, NlohmannJsonAdapter(value), &results)) return {};
    // Inner errors come before those around them.
    const auto compared = std::min<std::ptrdiff_t>(kMaxCompared, results.end() - results.begin());
    const std::vector<SchemaError> errors(results.begin(), results.begin() + compared);
    return Fail(Unusable(words, Explanation(errors, impl_->text, words)));
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInvalidArgument, "the " + object + " could not be checked", error.what());
  }
}

namespace {

constexpr int kMaxSchemaDepth = 16;

// Keywords with the same meaning in every draft since 6, by kind of value.
constexpr std::array<const char*, 4> kNumbers = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
constexpr std::array<const char*, 6> kCounts = {"minItems",  "maxItems",      "minLength",
                                                "maxLength", "minProperties", "maxProperties"};
constexpr std::array<const char*, 7> kTypes = {"null", "boolean", "object", "array", "number", "string", "integer"};

bool IsType(const Json& type) {
  return type.is_string() && std::ranges::find(kTypes, type.get_ref<const std::string&>()) != kTypes.end();
}

bool IsTypes(const Json& type) {
  return IsType(type) || (type.is_array() && !type.empty() && std::ranges::all_of(type, IsType));
}

Json Checkable(const Json& schema, int depth) {
  Json kept = Json::object();
  // Keywords beside a reference are ignored in draft-07, but not in later drafts.
  if (!schema.is_object() || depth > kMaxSchemaDepth || schema.contains("$ref")) return kept;
  if (schema.contains("type") && IsTypes(schema["type"])) kept["type"] = schema["type"];
  if (schema.contains("enum") && schema["enum"].is_array() && !schema["enum"].empty()) kept["enum"] = schema["enum"];
  for (const char* keyword : kNumbers) {
    if (schema.contains(keyword) && schema[keyword].is_number()) kept[keyword] = schema[keyword];
  }
  for (const char* keyword : kCounts) {
    if (schema.contains(keyword) && schema[keyword].is_number_unsigned()) kept[keyword] = schema[keyword];
  }
  if (schema.contains("properties") && schema["properties"].is_object()) {
    kept["properties"] = Json::object();
    for (const auto& [name, member] : schema["properties"].items())
      kept["properties"][name] = Checkable(member, depth + 1);
  }
  if (schema.contains("required") && schema["required"].is_array()) {
    Json names = Json::array();
    for (const Json& name : schema["required"]) {
      if (name.is_string() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    if (!names.empty()) kept["required"] = std::move(names);
  }
  // Beside prefixItems, "items" describes the elements after those.
  if (schema.contains("items") && schema["items"].is_object() && !schema.contains("prefixItems"))
    kept["items"] = Checkable(schema["items"], depth + 1);
  const bool closed = schema.contains("additionalProperties") && schema["additionalProperties"] == false;
  if (closed && !schema.contains("patternProperties")) kept["additionalProperties"] = false;
  return kept;
}

void TakeNullForOptional(Json& schema) {
  if (!schema.contains("properties")) return;
  for (auto& [name, member] : schema["properties"].items()) {
    const bool is_required =
        schema.contains("required") &&
        std::find(schema["required"].begin(), schema["required"].end(), name) != schema["required"].end();
    if (is_required) continue;
    if (member.contains("type")) {
      Json& type = member["type"];
      if (type.is_string()) type = Json::array({type});
      if (std::ranges::find(type, "null") == type.end()) type.push_back("null");
    }
    if (member.contains("enum") &&
        std::find(member["enum"].begin(), member["enum"].end(), nullptr) == member["enum"].end())
      member["enum"].push_back(nullptr);
  }
}

}  // namespace

std::string CheckablePart(std::string_view schema, OptionalNulls nulls) {
  const auto parsed = ParseJson(schema);
  Json kept = {{"type", "object"}};
  if (parsed) kept.update(Checkable(*parsed, 0));
  kept["type"] = "object";
  if (nulls == OptionalNulls::kNotGiven) TakeNullForOptional(kept);
  return DumpJson(kept);
}

namespace {

// Turns titled choices, [{"const": "a", "title": "A"}, ...], into an enumeration; null for anything else.
Json TitledChoices(const Json& choices) {
  Json values = Json::array();
  if (!choices.is_array()) return nullptr;
  for (const Json& each : choices) {
    if (MemberOf(each, "const").is_null()) return nullptr;
    values.push_back(each["const"]);
  }
  return values.empty() ? Json(nullptr) : values;
}

void TakeChoices(Json& field, const char* keyword) {
  if (Json values = TitledChoices(MemberOf(field, keyword)); !values.is_null()) field["enum"] = std::move(values);
}

// The form's schema for the validator: choices become enumerations, fields with a default are not required, and other
// fields are forbidden.
std::string Checkable(Json schema) {
  Json required = Json::array();
  if (schema.contains("properties") && schema["properties"].is_object()) {
    for (auto& [name, field] : schema["properties"].items()) {
      if (!field.is_object()) continue;
      TakeChoices(field, "oneOf");
      if (field.contains("items") && field["items"].is_object()) TakeChoices(field["items"], "anyOf");
      const Json& names = MemberOf(schema, "required");
      const bool must = names.is_array() && std::find(names.begin(), names.end(), name) != names.end();
      if (must && !field.contains("default")) required.push_back(name);
    }
    schema["additionalProperties"] = false;
  }
  schema["required"] = std::move(required);
  return CheckablePart(DumpJson(schema));
}

// RFC 3339, section 5.6.
bool IsDate(const std::string& text, std::string* rest) {
  int year = 0;
  unsigned month = 0, day = 0;
  if (!RE2::FullMatch(text, R"((\d{4})-(\d\d)-(\d\d)(.*))", &year, &month, &day, rest)) return false;
  return std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)).ok();
}
bool IsTime(const std::string& text) {
  return RE2::FullMatch(text, R"([Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d))");
}

// Checks the four formats that forms may use; true for any other.
bool HasFormat(const std::string& text, const Json& format) {
  std::string rest;
  if (format == "email") return RE2::FullMatch(text, R"([^@\s]+@[^@\s]+)");
  if (format == "uri") return RE2::FullMatch(text, R"([A-Za-z][A-Za-z0-9+.-]*:[^\s]+)");
  if (format == "date") return IsDate(text, &rest) && rest.empty();
  if (format == "date-time") return IsDate(text, &rest) && IsTime(rest);
  return true;
}

const char* Example(const Json& format) {
  if (format == "email") return "an e-mail address, such as ann@example.org";
  if (format == "uri") return "a URI, such as https://example.org/";
  if (format == "date") return "a date, such as 2026-01-31";
  return "a date and time, such as 2026-01-31T12:00:00Z";
}

}  // namespace

Result<void> CheckForm(std::string_view schema, std::string_view response) {
  const auto form = ParseJson(schema);
  if (!form || !form->is_object()) return {};  // nothing to check
  const auto compiled = ArgumentSchema::Compile(Checkable(*form), SchemaSubject::kForm);
  if (!compiled) return {};
  TRY((*compiled)->Check(response));
  const auto filled_in = TRY(ParseJson(response.empty() ? "{}" : response));
  const Json& fields = MemberOf(*form, "properties");
  for (const auto& [name, value] : filled_in.items()) {
    const Json& format = MemberOf(MemberOf(fields, name), "format");
    if (!value.is_string() || HasFormat(value.get<std::string>(), format)) continue;
    return Fail(Reason::kInvalidResponse, "invalid response: \"" + name + "\" must be " + Example(format));
  }
  return {};
}

}  // namespace reprise
