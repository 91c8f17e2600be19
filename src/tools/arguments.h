#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// The arguments of one call, read by name. A missing one or one of another type reads as nullopt, because the schema
// check has already reported it.
class Arguments {
 public:
  // REQUIRES: `text` has passed the tool's schema. Text that is not an object reads as an empty one.
  explicit Arguments(std::string_view text);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  std::optional<std::string> String(std::string_view name) const;
  // The strings in an array.
  std::vector<std::string> Strings(std::string_view name) const;
  std::optional<bool> Boolean(std::string_view name) const;
  // 5.0 counts as 5, as in the schema.
  std::optional<std::int64_t> Integer(std::string_view name) const;

 private:
  struct Object;
  std::unique_ptr<Object> object_;
};

// The subject of a schema, for the words of messages: a tool's arguments, a form for a person, or a model's answer.
// An answer may be any JSON value; the others are objects.
enum class SchemaSubject { kArguments, kForm, kAnswer };

// A compiled JSON Schema (draft-07). Thread-safe. The schema itself must be trusted, because a hostile "pattern" could
// take forever.
class ArgumentSchema {
 public:
  // kInvalidArgument if `schema` is not a schema of an object.
  static Result<std::unique_ptr<ArgumentSchema>> Compile(std::string_view schema,
                                                         SchemaSubject subject = SchemaSubject::kArguments);
  ~ArgumentSchema();

  // Checks raw text from a model or a person; "" counts as {}, except as an answer. kInvalidArgument or kTooLarge, with
  // a message that says what to fix.
  Result<void> Check(std::string_view arguments) const;

 private:
  struct Impl;
  explicit ArgumentSchema(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// How to treat null for an optional member of another type. Models send it for omitted arguments.
enum class OptionalNulls { kRefused, kNotGiven };

// The part of an untrusted JSON Schema that is safe to check: types, members, enumerations and limits, to a limited
// depth. Omits keywords that could take forever or lead elsewhere (pattern, $ref, and combinations such as anyOf, whose
// meaning depends on the dialect); the schema's owner must check those. Anything but a schema of an object becomes the
// schema of any object.
std::string CheckablePart(std::string_view schema, OptionalNulls nulls = OptionalNulls::kRefused);

// Checks a person's input for a server's form (Model Context Protocol 2025-11-25, "Elicitation: Requested Schema": a
// flat object of texts, numbers, booleans and choices) before the server gets it. Fields with a default may be missing;
// unknown fields are refused as typing errors. `schema` is not trusted, so unsafe parts of it are left to the server.
// kInvalidArgument (reason "invalid_response") with a message that says which field to fix.
Result<void> CheckForm(std::string_view schema, std::string_view response);

}  // namespace reprise
