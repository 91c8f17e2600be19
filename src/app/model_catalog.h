#pragma once

#include <memory>

#include "reprise/audio.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// Whether nobody gets anything from it without a key.
bool WantsKey(const ProviderOptions& provider);

// The models of a configuration. `transport` must outlive them.
Result<std::unique_ptr<ModelDirectory>> MakeModelDirectory(Transport& transport, const Options& options);

// What listens and speaks, as it is configured. kInvalidArgument (reason "invalid_config"): by a provider that is not
// there, or of another type.
Result<std::unique_ptr<Audio>> MakeAudio(Transport& transport, const Options& options);

}  // namespace reprise
