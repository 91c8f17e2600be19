#pragma once

#include <vector>

#include "app/health_checks.h"

namespace reprise {

// Whether a server for several people could tell who they are, and keeps them apart. None for one user. Asks the issuer
// and where the tokens are, for some seconds each.
std::vector<Finding> CheckPeople(const Options& options);

}  // namespace reprise
