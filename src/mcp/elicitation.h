#pragma once

#include "base/json.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// The params of elicitation/create (Model Context Protocol 2025-11-25, "Elicitation"), in form or URL mode.
// kInvalidArgument if they are neither.
Result<ToolQuestion> ParseQuestion(const Json& params);

// The result for the server. To what was accepted the schema's defaults are added where a field lacks, and nothing is
// passed on that the schema does not name; an answer that lacks a required field is a "cancel".
Json AnswerToJson(const ToolQuestion& question, const ToolAnswer& answer);

}  // namespace reprise
