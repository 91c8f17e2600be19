#pragma once

#include "base/json.h"
#include "domain/json_reader.h"
#include "reprise/event.h"

namespace reprise {

// The members of a token usage, in events and interactions. Those about the provider's cache are there only if it was
// used.
void WriteUsage(Json& out, const TokenUsage& usage);
TokenUsage ReadUsage(JsonReader& in);

}  // namespace reprise
