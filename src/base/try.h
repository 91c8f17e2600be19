#pragma once

#include <type_traits>
#include <utility>

#include "reprise/result.h"

// The value of a Result, or the calling function returns its error:
//
//   auto keys = TRY(LoadKeyFile(path));
//   TRY(file.Sync());
//
// It returns from the innermost function or lambda, which must return a Result. A named result is copied. Do not use it
// for an unnamed value that must live on, such as a lock: `TRY(Lock())` releases it at once. Nor for a SecretKey,
// because each of two moves may leave a copy on the stack. Nor within braces after another element: GCC 12 does not
// destroy what an initializer list or an aggregate already holds when the function returns (scripts/layers finds it).
#define TRY(...) REPRISE_TRY(REPRISE_TRY_NAME(__COUNTER__), __VA_ARGS__)
#define REPRISE_TRY_NAME(number) REPRISE_TRY_JOIN(number)
#define REPRISE_TRY_JOIN(number) tried_##number
// Only a statement expression (GCC, clang) can return from the middle of an expression.
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
