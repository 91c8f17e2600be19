#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// The bytes of a regular file of at most `max_bytes`. kNotFound, kTooLarge, kInvalidArgument (not a regular file), kIo;
// the message names the file, since it is for the person at the terminal.
Result<std::string> ReadSmallFile(const std::string& path, std::size_t max_bytes);

// The same for files that control the agent but were found rather than named (a configuration, parts of the system
// prompt): kForbidden unless the file belongs to this user or root and only its owner can write it.
Result<std::string> ReadOwnFile(const std::string& path, std::size_t max_bytes);

// The token in a file that only its owner can read: white space around it removed, at least 16 visible ASCII
// characters. Neither message nor detail contains any of it.
Result<std::string> ReadToken(const std::string& path);

// Writes a file of mode 0600 atomically and durably. kConflict (reason "file_exists") if it exists and `replace` is
// false; never replaces a folder. With `replace` a symbolic link stays and its target is replaced, and what is no
// regular file (a device, a fifo) is written into. The message names the path for the person at the terminal.
Result<void> WriteOutputFile(const std::string& path, std::string_view content, bool replace);

// Where the content then is: a link may lead to nothing yet.
std::string PlaceOfOutput(const std::string& path);

// Whether a path, which need not exist, is this folder or lies in it after symbolic links are resolved.
bool LiesIn(const std::string& path, const std::string& folder);

// kConflict (reason "file_exists") if `path` exists.
Result<void> CheckNothingThere(const std::string& path);

// Renames a file or a folder, but never over an existing one: fails likewise, even if that appears at this moment
// (where the file system can do it in one step).
Result<void> MoveToFreeName(const std::string& from, const std::string& to);

}  // namespace reprise
