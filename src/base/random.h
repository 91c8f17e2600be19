#pragma once

#include <cstddef>
#include <string>

namespace reprise {

// `bytes` random bytes from the operating system (getrandom(2)) as lower-case hex. Unguessable.
std::string RandomHex(std::size_t bytes);

// A number from 0 up to, but not, 1; not for secrets. Thread-safe.
double RandomFraction();

}  // namespace reprise
