#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "crypto/secret_key.h"

namespace reprise {

// Overwrites memory before it gives it back.
template <typename T>
struct WipingAllocator {
  using value_type = T;

  WipingAllocator() = default;
  template <typename U>
  WipingAllocator(const WipingAllocator<U>&) {}

  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, std::size_t count) {
    WipeBytes(memory, count * sizeof(T));
    std::allocator<T>().deallocate(memory, count);
  }
  bool operator==(const WipingAllocator&) const { return true; }
};

// A passphrase, or the text of a key set: it leaves nothing behind in freed memory, neither when it grows nor when it
// goes. Not a std::string, which keeps short texts in itself, where no allocator sees them go.
using SecretText = std::vector<char, WipingAllocator<char>>;

inline std::string_view View(const SecretText& text) { return {text.data(), text.size()}; }
inline void Append(SecretText& text, std::string_view more) { text.insert(text.end(), more.begin(), more.end()); }

}  // namespace reprise
