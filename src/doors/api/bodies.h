#pragma once

#include <string_view>

#include "base/json.h"
#include "reprise/accounting.h"
#include "reprise/engine.h"
#include "reprise/model_client.h"

namespace reprise {

// Tokens and cost, in total and by model. A cost is null if a model in it has no price.
Json UsageBody(const UsageByModel& usage, const PriceTable& prices);

// Adds the changes that restoring files would make.
void AddTo(Json& body, const FilesPreview& preview);

// The body of GET /models (schemas/models.schema.json): the models, their prices, and the models for speech ("": none).
// May ask the providers.
Json ModelList(const ModelDirectory& directory, const PriceTable& prices, std::string_view transcription,
               std::string_view speech, std::string_view talk);

}  // namespace reprise
