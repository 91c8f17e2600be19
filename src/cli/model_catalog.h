#pragma once

#include <memory>

#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

// The models of a configuration. `transport` must outlive them.
Result<std::unique_ptr<ModelDirectory>> MakeModelDirectory(Transport& transport, const Options& options);

}  // namespace reprise
