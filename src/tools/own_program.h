#pragma once

#include <string>
#include <string_view>

namespace reprise {

// The full path of a program that belongs to Reprise ("reprise-document"): beside this one, or where it is installed.
// Empty if it is missing.
std::string FindOwnProgram(std::string_view name);

}  // namespace reprise
