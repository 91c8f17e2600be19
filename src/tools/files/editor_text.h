#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reprise/tool.h"
#include "tools/files/workspace.h"

// Files that somebody edits while the agent works: what is in the editor and not saved yet counts.
namespace reprise {

// What the editor has of a file that was opened by the workspace's rules; nullopt: nothing that is text.
std::optional<std::string> TextInEditor(const Workspace& workspace, std::string_view path, const ToolContext& context);

// The same of a file that is to be changed, if it is there and the editor has something else than the disk: then the
// change is the editor's to make, as one on the disk would have its person choose between two texts. nullopt: the
// disk's.
std::optional<std::string> UnsavedText(const Workspace& workspace, std::string_view path, const ToolContext& context);

// Has the editor put `content` in the place of what it has. What the model is told behind what was done; the error is
// for it, too.
Result<std::string> ChangeInEditor(const Workspace& workspace, std::string_view path, const std::string& content,
                                   const ToolContext& context);

}  // namespace reprise
