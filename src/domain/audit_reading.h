#pragma once

#include <functional>

#include "base/json.h"
#include "reprise/audit_log.h"
#include "reprise/result.h"

namespace reprise {

// Passes each line of the log, parsed, until `use` returns false. Leaves out lines that are not JSON. kNotFound: there
// is no data folder; kIo.
Result<void> ReadAuditLines(const AuditLog& log, const std::function<bool(const Json& line)>& use);

}  // namespace reprise
