#pragma once

#include <optional>
#include <string>

#include "reprise/workspace_change.h"

namespace reprise {

// A change in git's format; empty if there is nothing to print (a directory). `before` and `after` are the contents;
// nullopt if there is none or it is not kept.
std::string UnifiedDiff(const WorkspaceChange& change, const std::optional<std::string>& before,
                        const std::optional<std::string>& after);

}  // namespace reprise
