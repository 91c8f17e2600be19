#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Wall-clock time, to the millisecond, UTC.
using Timestamp = std::chrono::sys_time<std::chrono::milliseconds>;

// ISO 8601 with milliseconds: 2025-01-15T10:00:00.000Z.
std::string FormatTimestamp(Timestamp time);
// Accepts the format of FormatTimestamp, with or without milliseconds (the specification has both).
Result<Timestamp> ParseTimestamp(std::string_view text);
Timestamp Now();

}  // namespace reprise
