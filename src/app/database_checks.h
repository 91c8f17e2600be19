#pragma once

#include <vector>

#include "app/health_checks.h"

namespace reprise {

// Whether a server could use its database: it answers, has the tables of this program, and holds the server's role to
// row-level security. None where chats are kept in files. Waits for some seconds.
std::vector<Finding> CheckDatabase(const Options& options);

}  // namespace reprise
