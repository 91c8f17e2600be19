#include "tools/argument_schema.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// Without it a bad schema ends the process instead of throwing.
#define VALIJSON_USE_EXCEPTIONS 1
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "base/json.h"
#include "base/try.h"

namespace reprise {
namespace {

using PlainJson = nlohmann::json;
using valijson::adapters::NlohmannJsonAdapter;
using SchemaError = valijson::ValidationResults::Error;

constexpr std::size_t kMaxArgumentBytes = 1024 * 1024;
constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53
constexpr std::size_t kMaxReported = 5;

// JSON Schema calls 1.0 an integer; the library does not.
void MakeWholeNumbersIntegers(PlainJson& value) {
  if (value.is_structured()) {
    for (auto& element : value) MakeWholeNumbersIntegers(element);
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kMaxExactInteger) value = static_cast<std::int64_t>(number);
  }
}

// How messages name an object, its members and all of them.
struct Words {
  const char *reason, *object, *member, *members;
};
constexpr Words kOfArguments{"invalid_arguments", "arguments", "argument", "Arguments of this tool"};
constexpr Words kOfForm{"invalid_response", "response", "field", "Fields"};

Error Unusable(const Words& words, std::string message, ErrorCode code = ErrorCode::kInvalidArgument) {
  return Error{.code = code, .reason = words.reason, .message = std::move(message)};
}

bool IsProperPrefix(const std::vector<std::string>& prefix, const std::vector<std::string>& path) {
  return prefix.size() < path.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

// The library follows a fault with one entry for each object around it; only the innermost says what to mend.
std::vector<SchemaError> Innermost(const std::vector<SchemaError>& errors) {
  std::vector<SchemaError> innermost;
  std::copy_if(errors.begin(), errors.end(), std::back_inserter(innermost), [&](const SchemaError& error) {
    return std::none_of(errors.begin(), errors.end(),
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
    const bool is_index = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    path += is_index ? step : (path.empty() ? "" : ".") + name;
  }
  return path;
}

// The place in the schema that describes the member at `context`, or null.
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
  if (error.description.find("'type' constraint") != std::string::npos && expected != nullptr) {
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
    if (lines.size() < kMaxReported && std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(line);
  }
  std::string text = std::string("invalid ") + words.object + ": ";
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "; ") + lines[i];
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
  auto parsed = ParseJson(arguments.empty() ? "{}" : arguments);
  if (!parsed) return Fail(Unusable(words, "the " + object + " cannot be used: " + parsed.error().message));
  if (!parsed->is_object()) {
    return Fail(Unusable(words, "the " + object + " must be a JSON object, such as {\"name\": \"value\"}. " +
                                    words.members + ": " + Signature(impl_->text) + "."));
  }
  PlainJson value = *parsed;
  MakeWholeNumbersIntegers(value);
  try {
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(impl_->schema, NlohmannJsonAdapter(value), &results)) return {};
    return Fail(Unusable(words, Explanation({results.begin(), results.end()}, impl_->text, words)));
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInvalidArgument, "the " + object + " could not be checked", error.what());
  }
}

}  // namespace reprise
