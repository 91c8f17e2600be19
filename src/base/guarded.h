#pragma once

#include <exception>
#include <string_view>

#include "base/logging.h"

namespace reprise {

// Calls foreign work from a thread that must not end with it: what is thrown, of whatever type, is logged as a fault of
// `whose` and goes no further. True: nothing was thrown.
template <typename Work>
bool Guarded(std::string_view whose, Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    LogError("an exception was thrown where none may be", {{"by", whose}, {"what", error.what()}});
  } catch (...) {
    LogError("an exception was thrown where none may be", {{"by", whose}});
  }
  return false;
}

}  // namespace reprise
