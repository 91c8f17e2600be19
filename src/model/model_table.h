#pragma once

#include <string_view>

#include "reprise/model_client.h"

namespace reprise {

// Built-in facts about well-known models, by the provider's own names; used where neither the configuration nor the
// provider knows. Cautious: where a model's versions differ, the smaller number. `thinking` is kAdaptive for models
// that should decide themselves how much they think.
ModelFacts BuiltInFacts(std::string_view model);

// `facts`, with unknown values taken from `more`.
ModelFacts Complete(ModelFacts facts, const ModelFacts& more);

}  // namespace reprise
