#pragma once

#include <string_view>

#include "reprise/model_client.h"

namespace reprise {

// What is known about well-known models by their provider's own names, for when neither the configuration nor the
// provider says. Cautious: where a model's versions differ, the smaller number. `thinking` is kAdaptive for models that
// are to decide themselves how much they think.
ModelFacts BuiltInFacts(std::string_view model);

// `facts` with what it does not know taken from `more`.
ModelFacts Complete(ModelFacts facts, const ModelFacts& more);

}  // namespace reprise
