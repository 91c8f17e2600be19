#pragma once

#include <type_traits>
#include <utility>

#include "reprise/result.h"

// The value of a Result, or the calling function returns its error:
//
//   auto keys = TRY(LoadKeyFile(path));
//   TRY(file.Sync());
//
// It returns from the innermost function or lambda, which returns a Result itself. A result that has a name is copied.
// Not for what must live on without a name, a lock, say: `TRY(Lock())` alone lets go of it at once. Nor for a
// SecretKey: the value is moved twice, and the compiler may leave a copy of each move on the stack.
#define TRY(...) REPRISE_TRY(REPRISE_TRY_NAME(__COUNTER__), __VA_ARGS__)
#define REPRISE_TRY_NAME(number) REPRISE_TRY_JOIN(number)
#define REPRISE_TRY_JOIN(number) tried_##number
// A statement expression, which GCC and clang have: what else could return from the middle of an expression?
#define REPRISE_TRY(result, ...)                                    \
  __extension__({                                                   \
    auto result = (__VA_ARGS__);                                    \
    if (!result) return ::reprise::Fail(std::move(result.error())); \
    ::reprise::ValueOf(result);                                     \
  })

namespace reprise {

template <typename T>
T ValueOf(Result<T>& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace reprise
