#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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

// Writes a file of mode 0600, all at once and durably. kConflict (reason "file_exists") if there is one and not
// `replace`; a folder is never replaced. The message names the path, since it is for the person at the terminal.
Result<void> WriteOutputFile(const std::string& path, std::string_view content, bool replace);

// Whether a path, there or not, is this folder or lies in it, symbolic links followed.
bool LiesIn(const std::string& path, const std::string& folder);

// kConflict (reason "file_exists") if there is anything at `path`.
Result<void> CheckNothingThere(const std::string& path);

// Renames a file or a folder, but not over anything: the same failure, even if it came at this moment (where the file
// system can tell in one step).
Result<void> MoveToFreeName(const std::string& from, const std::string& to);

}  // namespace reprise
