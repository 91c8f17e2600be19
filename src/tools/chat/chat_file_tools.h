#pragma once

#include <memory>

#include "tools/builtin_tool.h"

namespace reprise {

// What the agent can do with the files of the chat it works in: those that were uploaded to it, and its own. Not the
// files of the workspace.
std::unique_ptr<BuiltinTool> MakeListChatFilesTool();
std::unique_ptr<BuiltinTool> MakeReadChatFileTool();
std::unique_ptr<BuiltinTool> MakeSaveChatFileTool();
std::unique_ptr<BuiltinTool> MakeDeleteChatFileTool();

}  // namespace reprise
