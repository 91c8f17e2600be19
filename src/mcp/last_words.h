#pragma once

#include <string>
#include <string_view>

namespace reprise {

// What a program that has ended said of why, out of what it wrote to stderr: the lines that name an error, without the
// frames of the stack and the versions that runtimes write behind them; else its last line. On one line, bounded, valid
// UTF-8 without control characters.
std::string LastWords(std::string_view errors);

}  // namespace reprise
