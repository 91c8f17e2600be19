#pragma once

#include <memory>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// What a schema is of, in the words of the messages: a tool's arguments, or a form that a person fills in.
enum class SchemaSubject { kArguments, kForm };

// A compiled JSON Schema (draft-07) of an object. Thread-safe. The schema's own text must be trusted: a
// hostile "pattern" could take for ever.
class ArgumentSchema {
 public:
  // kInvalidArgument if `schema` is not a schema of an object.
  static Result<std::unique_ptr<ArgumentSchema>> Compile(std::string_view schema,
                                                         SchemaSubject subject = SchemaSubject::kArguments);
  ~ArgumentSchema();

  // Checks raw text from a model or a person; "" counts as {}. The message says in words what to mend:
  // kInvalidArgument, kTooLarge.
  Result<void> Check(std::string_view arguments) const;

 private:
  struct Impl;
  explicit ArgumentSchema(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
