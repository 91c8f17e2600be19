#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace reprise::test {

// Checks JSON against one file of schemas/, with the validator that the program itself uses for tools.
class SchemaValidator {
 public:
  // `name` is "interaction" for schemas/interaction.schema.json. Throws if the file cannot be read.
  explicit SchemaValidator(const std::string& name);
  // For a schema as text (draft-07).
  static SchemaValidator FromText(std::string_view schema);
  ~SchemaValidator();
  SchemaValidator(SchemaValidator&&) noexcept;

  // The errors in `json`; empty if it satisfies the schema.
  std::string Complaint(std::string_view json) const;

 private:
  struct Impl;
  explicit SchemaValidator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::test
