#pragma once

#include <vector>

#include "base/json.h"
#include "reprise/engine.h"

namespace reprise {

// What restoring files would do, as clients are told.
Json ToJson(const std::vector<FilePreview>& files);

}  // namespace reprise
