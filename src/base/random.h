#pragma once

#include <cstddef>
#include <string>

namespace reprise {

// `bytes` random bytes from the operating system (getrandom(2)) as lower-case hex. Unguessable.
std::string RandomHex(std::size_t bytes);

}  // namespace reprise
