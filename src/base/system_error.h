#pragma once

#include <string>

#include "reprise/error.h"

namespace reprise {

// What an errno is called, everywhere: no space left is kStorageFull; no descriptor, memory or thread left is
// kUnavailable (reason "too_many_files" or "overloaded"), retryable; not there is kNotFound, there already kConflict;
// all else is kIo with `io_message`. `what` (a call, a path) goes to the log.
Error SystemError(int error, const std::string& what, std::string io_message = "the disk could not be read or written");

}  // namespace reprise
