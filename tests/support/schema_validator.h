#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace reprise::test {

// Validates against one file of schemas/, with the validator that the program itself uses for tools.
class SchemaValidator {
 public:
  // `name`: "interaction" for schemas/interaction.schema.json. Throws if it cannot be read.
  explicit SchemaValidator(const std::string& name);
  // A schema as text (draft-07).
  static SchemaValidator FromText(std::string_view schema);
  ~SchemaValidator();
  SchemaValidator(SchemaValidator&&) noexcept;

  // Empty if `json` satisfies the schema; otherwise the problem.
  std::string Complaint(std::string_view json) const;

 private:
  struct Impl;
  explicit SchemaValidator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::test
