#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace reprise {

// A 256-bit key. Cannot be printed or compared, is copied only by Clone, and wipes its bytes on destruction.
class SecretKey {
 public:
  static constexpr std::size_t kBytes = 32;

  static SecretKey Random();
  // nullopt unless `bytes` has exactly kBytes bytes.
  static std::optional<SecretKey> FromBytes(std::string_view bytes);

  SecretKey(SecretKey&& other) noexcept;  // wipes the other
  SecretKey& operator=(SecretKey&& other) noexcept;
  ~SecretKey();

  SecretKey Clone() const;
  const unsigned char* data() const { return bytes_.data(); }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  SecretKey() = default;
  std::array<unsigned char, kBytes> bytes_{};
};

// Overwrites bytes; the optimizer cannot remove it.
void WipeBytes(void* data, std::size_t size);
// Overwrites the remains of returned calls on the stack: a spilled vector register of a parser can hold a key's text.
void WipeStack();

// Wipes memory before freeing it.
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

// A passphrase or the text of a key set. Leaves nothing in freed memory, neither when it grows nor when it is
// destroyed. Not a std::string, which keeps short texts in itself, out of the allocator's reach.
using SecretText = std::vector<char, WipingAllocator<char>>;

inline std::string_view View(const SecretText& text) { return {text.data(), text.size()}; }
inline void Append(SecretText& text, std::string_view more) { text.insert(text.end(), more.begin(), more.end()); }

}  // namespace reprise
