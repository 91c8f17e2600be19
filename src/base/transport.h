#pragma once

#include <chrono>
#include <optional>

#include "reprise/transport.h"

namespace reprise {

// How long a response asks to wait before the next request: `retry-after-ms` (OpenAI, Azure), else `retry-after` (RFC
// 9110, section 10.2.3) as seconds or as a date in any of the forms of section 5.6.7. A date is compared with the
// response's own `date`, so that wrong clocks do not matter, or with `now` if there is none. nullopt if no readable
// value is given; zero for a date in the past.
std::optional<std::chrono::milliseconds> RetryAfter(const HttpHeaders& headers,
                                                    std::chrono::system_clock::time_point now);

}  // namespace reprise
