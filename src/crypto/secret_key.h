#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace reprise {

// A 256-bit key. Cannot be printed or compared and is copied only by name (Clone); it wipes its bytes when it goes.
class SecretKey {
 public:
  static constexpr std::size_t kBytes = 32;

  static SecretKey Random();
  // nullopt unless there are exactly kBytes bytes.
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

// Overwrites bytes in a way that the optimizer keeps.
void WipeBytes(void* data, std::size_t size);
// Overwrites what calls that have returned left on the stack: a parser's vector registers are as long as a key's text.
void WipeStack();

}  // namespace reprise
