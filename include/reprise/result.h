#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "reprise/error.h"

namespace reprise {

// A value or an Error. Members are named as in std::expected, so that C++23 can replace this alias.
template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> Fail(ErrorCode code, std::string message, std::string detail = {}) {
  return tl::unexpected<Error>(MakeError(code, std::move(message), std::move(detail)));
}
inline tl::unexpected<Error> Fail(Reason reason, std::string message, std::string detail = {}) {
  return tl::unexpected<Error>(Refused(reason, std::move(message), std::move(detail)));
}

}  // namespace reprise
