#include "support/schema_validator.h"

#include <nlohmann/json.hpp>
#include <utility>

#define VALIJSON_USE_EXCEPTIONS 1
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "support/fixtures.h"
#include "support/source_directory.h"

namespace reprise::test {
namespace {

using PlainJson = nlohmann::json;
using valijson::adapters::NlohmannJsonAdapter;

}  // namespace

struct SchemaValidator::Impl {
  valijson::Schema schema;
};

SchemaValidator::SchemaValidator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SchemaValidator::SchemaValidator(const std::string& name)
    : SchemaValidator(FromText(ReadText(SourceDirectory() + "/schemas/" + name + ".schema.json"))) {}
SchemaValidator::SchemaValidator(SchemaValidator&&) noexcept = default;
SchemaValidator::~SchemaValidator() = default;

SchemaValidator SchemaValidator::FromText(std::string_view schema) {
  auto impl = std::make_unique<Impl>();
  const PlainJson json = PlainJson::parse(schema);
  valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(NlohmannJsonAdapter(json), impl->schema);
  return SchemaValidator(std::move(impl));
}

std::string SchemaValidator::Complaint(std::string_view json) const {
  const PlainJson value = PlainJson::parse(json);
  valijson::ValidationResults results;
  valijson::Validator validator;
  if (validator.validate(impl_->schema, NlohmannJsonAdapter(value), &results)) return {};
  valijson::ValidationResults::Error error;
  std::string text;
  while (results.popError(error)) {
    for (const std::string& step : error.context) text += step;
    text += " " + error.description + "\n";
  }
  return text.empty() ? "invalid" : text;
}

}  // namespace reprise::test
