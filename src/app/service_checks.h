#pragma once

#include <vector>

#include "app/health_checks.h"

// What `reprise doctor` asks others. Each is waited for some seconds at most, and nothing is changed there.
namespace reprise {

// One finding for each service that the configuration names: whether the database has the tables of this program and
// holds the server's role to row-level security, whether bucket, Redis and issuer let this server in. And whether a
// server for several people could tell who they are, and keeps them apart.
std::vector<Finding> CheckServices(const Options& options);

// One finding for each configured MCP server: starts or reaches it, greets it, counts its tools and lets it go.
std::vector<Finding> CheckMcpServers(const Options& options);

}  // namespace reprise
