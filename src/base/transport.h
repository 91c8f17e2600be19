#pragma once

#include <chrono>
#include <optional>

#include "reprise/transport.h"

namespace reprise {

// How long a response asks to wait before the next request: `retry-after-ms` (OpenAI, Azure), else `retry-after` (RFC
// 9110, section 10.2.3) as seconds or as a date in any of the forms of section 5.6.7. A date is compared with the
// response's own `date`, so that it does not matter whose clock is wrong, and with `now` if there is none. nullopt if
// nothing (that can be read) is said; a date that has passed is zero.
std::optional<std::chrono::milliseconds> RetryAfter(const HttpHeaders& headers,
                                                    std::chrono::system_clock::time_point now);

}  // namespace reprise
