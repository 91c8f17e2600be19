#pragma once

#include <string>

#include "base/json.h"
#include "reprise/result.h"

namespace reprise {

// The full name of the model that a person's `text` names, of those in `models` (the answer of GET /models): a listed
// name; any name with a listed provider before the slash, which may accept models that it does not list; or a part of
// the name, in any case, if only one model has it. kConflict if several have it (the message lists them), kNotFound.
// The message ends with `hint`: "/model lists them".
Result<std::string> FindModel(const std::string& text, const Json& models, const std::string& hint);

}  // namespace reprise
