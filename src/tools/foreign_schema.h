#pragma once

#include <string>
#include <string_view>

namespace reprise {

// What null is where a member is optional and of another type. Models give it for an argument that they leave out.
enum class OptionalNulls { kRefused, kNotGiven };

// The part of an untrusted JSON Schema that can be checked without danger: types, members, enumerations and limits, to
// a limited depth. Left out, and so for the schema's owner to check, is what could take for ever or lead elsewhere
// (pattern, $ref, and the combinations such as anyOf, which mean different things in different dialects). What is not a
// schema of an object becomes the schema of any object.
std::string CheckablePart(std::string_view schema, OptionalNulls nulls = OptionalNulls::kRefused);

}  // namespace reprise
