#include "base/system_error.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace reprise {

Error SystemError(int error, const std::string& what, std::string io_message) {
  std::string detail = what + ": " + std::generic_category().message(error);
  const auto unavailable = [&](const char* reason, const char* message) {
    return Error{.code = ErrorCode::kUnavailable,
                 .reason = reason,
                 .message = message,
                 .detail = std::move(detail),
                 .retryable = true};
  };
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return MakeError(ErrorCode::kNotFound, "no such file or directory", std::move(detail));
    case EEXIST:
    case ENOTEMPTY:
      return MakeError(ErrorCode::kConflict, "the file exists already", std::move(detail));
    case ENOSPC:
    case EDQUOT:
      return MakeError(ErrorCode::kStorageFull, "no space left to store this", std::move(detail));
    case EMFILE:
    case ENFILE:
      return unavailable("too_many_files", "too many files and connections are open; try again");
    case ENOMEM:
      return unavailable("overloaded", "the system has no memory left for this; try again");
    case EAGAIN:
      return unavailable("overloaded", "the system has nothing left for this; try again");
    default:
      return MakeError(ErrorCode::kIo, std::move(io_message), std::move(detail));
  }
}

}  // namespace reprise
