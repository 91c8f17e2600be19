#pragma once

#include <cstddef>
#include <string>

#include "reprise/result.h"

namespace reprise {

// Deletes an org's key, and then all rows of its users; how many users it had. kConflict if a server uses the database:
// it has the key in its memory.
Result<std::size_t> DeleteOrgRows(const std::string& url, const std::string& org);

}  // namespace reprise
