#pragma once

#include <string>

#include "engine/services.h"
#include "reprise/engine.h"
#include "reprise/workspaces.h"

namespace reprise {

// Engine::Blame. `path` is in the workspace, and `text` the file's content there.
Result<BlamedFile> BlameFile(EngineServices& services, const WorkspaceParts& workspace, const std::string& path,
                             std::string text);

}  // namespace reprise
