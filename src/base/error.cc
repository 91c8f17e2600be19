#include "reprise/error.h"

#include <array>

namespace reprise {
namespace {

struct Row {
  std::string_view name;
  ErrorCode code;
  bool retryable;
};
constexpr std::array kRows{
#define REPRISE_REASON(name, wire, kind, retryable) Row{wire, ErrorCode::kind, retryable},
    REPRISE_REASONS(REPRISE_REASON)
#undef REPRISE_REASON
};

const Row& RowOf(Reason reason) { return kRows[static_cast<std::size_t>(reason)]; }

}  // namespace

std::string_view NameOf(Reason reason) { return RowOf(reason).name; }

std::string_view DefaultReason(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return NameOf(Reason::kInvalidRequest);
    case ErrorCode::kUnauthenticated:
      return NameOf(Reason::kUnauthorized);
    case ErrorCode::kForbidden:
      return NameOf(Reason::kForbidden);
    case ErrorCode::kNotFound:
      return NameOf(Reason::kNotFound);
    case ErrorCode::kConflict:
      return NameOf(Reason::kConflict);
    case ErrorCode::kUnprocessable:
      return NameOf(Reason::kUnprocessable);
    case ErrorCode::kGone:
      return NameOf(Reason::kGone);
    case ErrorCode::kTooLarge:
      return NameOf(Reason::kTooLarge);
    case ErrorCode::kUnsupportedType:
      return NameOf(Reason::kUnsupportedMediaType);
    case ErrorCode::kCorruption:
      return NameOf(Reason::kIntegrityAuth);
    case ErrorCode::kIo:
      return NameOf(Reason::kIoError);
    case ErrorCode::kStorageFull:
      return NameOf(Reason::kStorageFull);
    case ErrorCode::kCancelled:
      return NameOf(Reason::kCancelled);
    case ErrorCode::kDeadlineExceeded:
      return NameOf(Reason::kDeadlineExceeded);
    case ErrorCode::kUnavailable:
      return NameOf(Reason::kUnavailable);
    case ErrorCode::kProvider:
      return NameOf(Reason::kProviderError);
    case ErrorCode::kInternal:
      return NameOf(Reason::kInternal);
  }
  return NameOf(Reason::kInternal);
}

Error MakeError(ErrorCode code, std::string message, std::string detail) {
  return {.code = code,
          .reason = std::string(DefaultReason(code)),
          .message = std::move(message),
          .detail = std::move(detail)};
}

Error Refused(Reason reason, std::string message, std::string detail) {
  return {.code = RowOf(reason).code,
          .reason = std::string(NameOf(reason)),
          .message = std::move(message),
          .detail = std::move(detail),
          .retryable = RowOf(reason).retryable};
}

}  // namespace reprise
