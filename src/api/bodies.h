#pragma once

#include <string_view>

#include "base/json.h"
#include "reprise/accounting.h"
#include "reprise/engine.h"
#include "reprise/model_client.h"

namespace reprise {

// Tokens and cost, together and by model; the cost is null where a model has no price.
Json UsageBody(const UsageByModel& usage, const PriceTable& prices);

// Adds to an answer what restoring files would do.
void AddTo(Json& body, const FilesPreview& preview);

// Which models there are, what they cost, and who listens and speaks ("": nobody), as GET /models tells
// (schemas/models.schema.json). Asks the providers that can be asked.
Json ModelList(const ModelDirectory& directory, const PriceTable& prices, std::string_view transcription,
               std::string_view speech);

}  // namespace reprise
