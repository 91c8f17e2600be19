#pragma once

#include <chrono>
#include <string>

#include "engine/services.h"
#include "reprise/engine.h"
#include "reprise/workspaces.h"

namespace reprise {

// Engine::Blame. `path` is in the workspace, and `text` the file's content there. It takes about `longest` at most, and
// there is one at a time, because each reads all chats of the folder.
Result<BlamedFile> BlameFile(EngineServices& services, const WorkspaceParts& workspace, const std::string& path,
                             std::string text, std::chrono::steady_clock::duration longest = std::chrono::seconds(10));

}  // namespace reprise
