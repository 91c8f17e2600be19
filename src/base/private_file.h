#pragma once

#include <cstddef>
#include <string>

#include "reprise/result.h"

namespace reprise {

// The bytes of a regular file of at most `max_bytes`. kNotFound, kTooLarge, kInvalidArgument (not a regular file), kIo;
// the message names the file, since it is for the person at the terminal.
Result<std::string> ReadSmallFile(const std::string& path, std::size_t max_bytes);

// The same for what decides how the agent behaves and was not named by its path (a configuration that was found, parts
// of the system prompt): it must belong to this user (or root) and be writable by nobody else. kForbidden otherwise.
Result<std::string> ReadOwnFile(const std::string& path, std::size_t max_bytes);

// The token in a file that only its owner can read: white space around it removed, at least 16 visible ASCII
// characters. Neither message nor detail ever holds any of it.
Result<std::string> ReadToken(const std::string& path);

}  // namespace reprise
