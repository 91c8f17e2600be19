#pragma once

#include <memory>

#include "reprise/audio.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// Whether the provider is useless without a key.
bool WantsKey(const ProviderOptions& provider);

// The configured models. `transport` must outlive them.
Result<std::unique_ptr<ModelDirectory>> MakeModelDirectory(Transport& transport, const Options& options);

// The configured transcription and speech. kInvalidArgument (reason "invalid_config") if a provider is missing or of
// another type.
Result<std::unique_ptr<Audio>> MakeAudio(Transport& transport, const Options& options);

}  // namespace reprise
