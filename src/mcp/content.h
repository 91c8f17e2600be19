#pragma once

#include <string>

#include "base/json.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// A server's results (Model Context Protocol 2026-07-28, "Tools", "Resources", "Prompts") as text for a model; long
// text is cut. Images, recordings and other files from a tool or a resource become the outcome's files; elsewhere they
// are only described.
// If a tool's structured content is {"requires_confirmation": true, "message": TEXT}, the user must agree first.
ToolOutcome ToolResultText(const Json& result);
ToolOutcome ResourceOutcome(const Json& result);
std::string PromptText(const Json& result);

// The params of elicitation/create (Model Context Protocol 2025-11-25, "Elicitation"), in form or URL mode.
// kInvalidArgument if they are neither.
Result<ToolQuestion> ParseQuestion(const Json& params);

// The result for the server. An accepted answer gets the schema's defaults for missing fields and loses fields that the
// schema does not name; without a required field it becomes a "cancel".
Json AnswerToJson(const ToolQuestion& question, const ToolAnswer& answer);

}  // namespace reprise
