#pragma once

#include <vector>

#include "app/health_checks.h"

// The checks of `reprise doctor` that ask other services. Each takes some seconds at most and changes nothing there.
namespace reprise {

// One finding for each configured service: whether the database has this program's tables and holds the server's role
// to row-level security, and whether bucket, Redis and issuer accept this server. With several users, also whether the
// server can identify them and keeps them apart.
std::vector<Finding> CheckServices(const Options& options);

// One finding for each configured MCP server: starts or reaches it, initializes a session, counts its tools and ends
// the session.
std::vector<Finding> CheckMcpServers(const Options& options);

}  // namespace reprise
