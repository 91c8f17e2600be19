#pragma once

#include <memory>
#include <vector>

#include "approval/rules.h"
#include "reprise/factories.h"
#include "reprise/file_system.h"
#include "reprise/transport.h"
#include "tools/tool_catalog.h"

namespace reprise {

// The names of the configured MCP servers, and the configured rules; null if there are none.
std::vector<std::string> NamesOfServers(const Options& options);
ToolRules RulesOf(const Options& options);

// Like MakeTools; the tools use `transport` and `disk`, which must outlive them. `readable_folders`: see ToolOptions.
Result<std::unique_ptr<ToolCatalog>> MakeToolCatalog(const Options& options, Transport& transport, FileSystem& disk,
                                                     std::vector<std::shared_ptr<Tool>> own,
                                                     std::function<std::vector<std::string>()> readable_folders = {});

}  // namespace reprise
