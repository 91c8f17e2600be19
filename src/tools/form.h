#pragma once

#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Checks what a person has filled into the form of a server (Model Context Protocol 2025-11-25, "Elicitation: Requested
// Schema": a flat object of texts, numbers, booleans and choices) before the server gets it. A field that has a default
// may lack; one that the form does not have is refused, as a typing error. `schema` is not trusted; what of it cannot
// be checked safely is left to the server. kInvalidArgument (reason "invalid_response"); the message says in words
// which field must be mended.
Result<void> CheckForm(std::string_view schema, std::string_view response);

}  // namespace reprise
