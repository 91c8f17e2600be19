#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// The arguments of one call, read by name. What is missing or of another type reads as nullopt: the schema has already
// said what is wrong with it.
class Arguments {
 public:
  // REQUIRES: `text` has passed the tool's schema. Anything else reads as an empty object.
  explicit Arguments(std::string_view text);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  std::optional<std::string> String(std::string_view name) const;
  // 5.0 counts as 5, as in the schema.
  // Of an array, the strings that it has.
  std::vector<std::string> Strings(std::string_view name) const;
  std::optional<std::int64_t> Integer(std::string_view name) const;

 private:
  struct Object;
  std::unique_ptr<Object> object_;
};

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

// What null is where a member is optional and of another type. Models give it for an argument that they leave out.
enum class OptionalNulls { kRefused, kNotGiven };

// The part of an untrusted JSON Schema that can be checked without danger: types, members, enumerations and limits, to
// a limited depth. Left out, and so for the schema's owner to check, is what could take for ever or lead elsewhere
// (pattern, $ref, and the combinations such as anyOf, which mean different things in different dialects). What is not a
// schema of an object becomes the schema of any object.
std::string CheckablePart(std::string_view schema, OptionalNulls nulls = OptionalNulls::kRefused);

// Checks what a person has filled into the form of a server (Model Context Protocol 2025-11-25, "Elicitation: Requested
// Schema": a flat object of texts, numbers, booleans and choices) before the server gets it. A field that has a default
// may lack; one that the form does not have is refused, as a typing error. `schema` is not trusted; what of it cannot
// be checked safely is left to the server. kInvalidArgument (reason "invalid_response"); the message says in words
// which field must be mended.
Result<void> CheckForm(std::string_view schema, std::string_view response);

}  // namespace reprise
