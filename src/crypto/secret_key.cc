#include "crypto/secret_key.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/system.h"

namespace reprise {

void WipeBytes(void* data, std::size_t size) { OPENSSL_cleanse(data, size); }

[[gnu::noinline]] void WipeStack() {
  std::array<unsigned char, 32 * 1024> below;
  WipeBytes(below.data(), below.size());
}

SecretKey SecretKey::Random() {
  SecretKey key;
  FillRandom(key.bytes_.data(), kBytes);
  return key;
}

std::optional<SecretKey> SecretKey::FromBytes(std::string_view bytes) {
  if (bytes.size() != kBytes) return std::nullopt;
  SecretKey key;
  std::ranges::copy(bytes, key.bytes_.begin());
  return key;
}

SecretKey::SecretKey(SecretKey&& other) noexcept : bytes_(other.bytes_) { WipeBytes(other.bytes_.data(), kBytes); }

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  if (this != &other) {
    bytes_ = other.bytes_;
    WipeBytes(other.bytes_.data(), kBytes);
  }
  return *this;
}

SecretKey::~SecretKey() { WipeBytes(bytes_.data(), kBytes); }

SecretKey SecretKey::Clone() const {
  SecretKey copy;
  copy.bytes_ = bytes_;
  return copy;
}

}  // namespace reprise
