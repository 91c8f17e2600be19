#pragma once

#include <vector>

#include "app/health_checks.h"
#include "reprise/options.h"

namespace reprise {

// One finding for each configured MCP server: starts or reaches it, greets it, counts its tools and lets it go.
std::vector<Finding> CheckMcpServers(const Options& options);

}  // namespace reprise
