#pragma once

#include <string>

#include "base/json.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// The results of a server (Model Context Protocol 2026-07-28, "Tools", "Resources", "Prompts") as text for a model, cut
// if they are long. Images, recordings and other files that a tool or a resource gives become the outcome's files;
// elsewhere what is not text is described.
// A tool's structured content may be {"requires_confirmation": true, "message": TEXT}: the user must agree first.
ToolOutcome ToolResultText(const Json& result);
ToolOutcome ResourceOutcome(const Json& result);
std::string PromptText(const Json& result);

// The params of elicitation/create (Model Context Protocol 2025-11-25, "Elicitation"), in form or URL mode.
// kInvalidArgument if they are neither.
Result<ToolQuestion> ParseQuestion(const Json& params);

// The result for the server. To what was accepted the schema's defaults are added where a field lacks, and nothing is
// passed on that the schema does not name; an answer that lacks a required field is a "cancel".
Json AnswerToJson(const ToolQuestion& question, const ToolAnswer& answer);

}  // namespace reprise
