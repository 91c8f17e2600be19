#include "tools/form.h"

#include <re2/re2.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/try.h"
#include "tools/argument_schema.h"
#include "tools/foreign_schema.h"

namespace reprise {
namespace {

const Json& Member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

// Choices with titles, [{"const": "a", "title": "A"}, ...], as an enumeration; null if they are something else.
Json TitledChoices(const Json& choices) {
  Json values = Json::array();
  if (!choices.is_array()) return nullptr;
  for (const Json& each : choices) {
    if (Member(each, "const").is_null()) return nullptr;
    values.push_back(each["const"]);
  }
  return values.empty() ? Json(nullptr) : values;
}

void TakeChoices(Json& field, const char* keyword) {
  if (Json values = TitledChoices(Member(field, keyword)); !values.is_null()) field["enum"] = std::move(values);
}

// The form's schema in words that the validator checks: choices are enumerations, no field is required that has a
// default, and there are no other fields.
std::string Checkable(Json schema) {
  Json required = Json::array();
  if (schema.contains("properties") && schema["properties"].is_object()) {
    for (auto& [name, field] : schema["properties"].items()) {
      if (!field.is_object()) continue;
      TakeChoices(field, "oneOf");
      if (field.contains("items") && field["items"].is_object()) TakeChoices(field["items"], "anyOf");
      const Json& names = Member(schema, "required");
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

// The four formats that forms may ask for; true for any other.
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
  if (!form || !form->is_object()) return {};  // nothing that could be checked
  const auto compiled = ArgumentSchema::Compile(Checkable(*form), SchemaSubject::kForm);
  if (!compiled) return {};
  TRY((*compiled)->Check(response));
  const auto filled_in = TRY(ParseJson(response.empty() ? "{}" : response));
  const Json& fields = Member(*form, "properties");
  for (const auto& [name, value] : filled_in.items()) {
    const Json& format = Member(Member(fields, name.c_str()), "format");
    if (!value.is_string() || HasFormat(value.get<std::string>(), format)) continue;
    return Fail(Error{.code = ErrorCode::kInvalidArgument,
                      .reason = "invalid_response",
                      .message = "invalid response: \"" + name + "\" must be " + Example(format)});
  }
  return {};
}

}  // namespace reprise
