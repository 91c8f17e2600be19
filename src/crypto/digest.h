#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// "sha256:" and the hex digest of the parts, one after the other.
std::string Sha256Digest(std::initializer_list<std::string_view> parts);

// The same of what a regular file holds, however large. kNotFound, kInvalidArgument (no regular file), kIo; the message
// names the file, as it is for the person at the terminal.
Result<std::string> Sha256OfFile(const std::string& path);

}  // namespace reprise
