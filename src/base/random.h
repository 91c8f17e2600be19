#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise {

// Fills `size` bytes from the operating system (getrandom(2)). Unguessable: fit for keys. Ends the process if there is
// no randomness to be had, since what can be guessed is worse than no server. Thread-safe.
void FillRandom(void* data, std::size_t size);

// `bytes` random bytes of FillRandom as lower-case hex.
std::string RandomHex(std::size_t bytes);

// Whether RandomHex(bytes) could have made it.
bool IsRandomHex(std::string_view text, std::size_t bytes);

// A number from 0 up to, but not, 1; not for secrets. Thread-safe.
double RandomFraction();

}  // namespace reprise
