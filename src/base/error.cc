#include "reprise/error.h"

namespace reprise {

std::string_view DefaultReason(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_request";
    case ErrorCode::kUnauthenticated:
      return "unauthorized";
    case ErrorCode::kForbidden:
      return "forbidden";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kUnprocessable:
      return "unprocessable";
    case ErrorCode::kGone:
      return "gone";
    case ErrorCode::kTooLarge:
      return "too_large";
    case ErrorCode::kUnsupportedType:
      return "unsupported_media_type";
    case ErrorCode::kCorruption:
      return "integrity_auth";
    case ErrorCode::kIo:
      return "io_error";
    case ErrorCode::kStorageFull:
      return "storage_full";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kProvider:
      return "provider_error";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

Error MakeError(ErrorCode code, std::string message, std::string detail) {
  return Refused(code, std::string(DefaultReason(code)), std::move(message), std::move(detail));
}

Error Refused(ErrorCode code, std::string reason, std::string message, std::string detail) {
  return {.code = code, .reason = std::move(reason), .message = std::move(message), .detail = std::move(detail)};
}

}  // namespace reprise
