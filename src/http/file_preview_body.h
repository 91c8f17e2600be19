#pragma once

#include "base/json.h"
#include "reprise/engine.h"

namespace reprise {

// Adds to an answer what restoring files would do.
void AddTo(Json& body, const FilesPreview& preview);

}  // namespace reprise
