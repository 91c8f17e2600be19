#include "crypto/aes_gcm.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/random.h"
#include "base/try.h"

namespace reprise {
namespace {

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

CipherContext NewContext() {
  CipherContext context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  if (!context) std::abort();  // out of memory
  return context;
}

// Fetched once: a fetch takes a lock and a search through the providers.
const EVP_CIPHER* Gcm() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  return cipher;
}
const EVP_CIPHER* KeyWrap() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-WRAP", nullptr);
  return cipher;
}

unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

bool FitsInt(std::string_view text) { return text.size() < std::numeric_limits<int>::max(); }
tl::unexpected<Error> TooLarge() { return Fail(ErrorCode::kTooLarge, "too much data for one record"); }

tl::unexpected<Error> CryptoFailure() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return Fail(ErrorCode::kInternal, "encryption failed", text.data());
}

tl::unexpected<Error> NotAuthentic() {
  ERR_clear_error();
  return Fail(ErrorCode::kCorruption, "the content does not fit its authentication tag");
}

}  // namespace

Result<GcmSealed> GcmSeal(const SecretKey& key, std::string_view associated_data, std::string_view plaintext) {
  GcmSealed sealed{.iv = std::string(kGcmIvBytes, '\0'), .ciphertext = {}, .tag = {}};
  FillRandom(sealed.iv.data(), kGcmIvBytes);
  TRY(GcmSealTo(sealed.ciphertext, key, sealed.iv, associated_data, plaintext));
  sealed.tag = sealed.ciphertext.substr(plaintext.size());
  sealed.ciphertext.resize(plaintext.size());
  return sealed;
}

Result<void> GcmSealTo(std::string& out, const SecretKey& key, std::string_view iv, std::string_view associated_data,
                       std::string_view plaintext) {
  if (!FitsInt(associated_data) || !FitsInt(plaintext)) return TooLarge();
  const std::size_t begin = out.size();
  out.resize(begin + plaintext.size() + kGcmTagBytes);
  unsigned char* const ciphertext = Bytes(out) + begin;
  unsigned char* const tag = ciphertext + plaintext.size();
  const CipherContext context = NewContext();
  int done = 0, rest = 0;
  const bool ok =
      EVP_EncryptInit_ex2(context.get(), Gcm(), key.data(), Bytes(iv), nullptr) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &done, Bytes(associated_data),
                        static_cast<int>(associated_data.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), ciphertext, &done, Bytes(plaintext), static_cast<int>(plaintext.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), ciphertext + done, &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kGcmTagBytes, tag) == 1;
  if (ok) return {};
  out.resize(begin);
  return CryptoFailure();
}

Result<std::string> GcmOpen(const SecretKey& key, std::string_view associated_data, std::string_view iv,
                            std::string ciphertext, std::string_view tag) {
  if (!FitsInt(associated_data) || !FitsInt(ciphertext)) return TooLarge();
  const CipherContext context = NewContext();
  std::string expected_tag(tag);  // the call takes a pointer to non-const
  int done = 0, rest = 0;
  const bool ok = EVP_DecryptInit_ex2(context.get(), Gcm(), key.data(), Bytes(iv), nullptr) == 1 &&
                  EVP_DecryptUpdate(context.get(), nullptr, &done, Bytes(associated_data),
                                    static_cast<int>(associated_data.size())) == 1 &&
                  EVP_DecryptUpdate(context.get(), Bytes(ciphertext), &done, Bytes(ciphertext),
                                    static_cast<int>(ciphertext.size())) == 1 &&
                  EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kGcmTagBytes, expected_tag.data()) == 1;
  if (!ok) return CryptoFailure();
  if (EVP_DecryptFinal_ex(context.get(), Bytes(ciphertext) + done, &rest) != 1) {
    WipeBytes(ciphertext.data(), ciphertext.size());
    return NotAuthentic();
  }
  return ciphertext;
}

Result<std::string> WrapKey(const SecretKey& wrapping_key, const SecretKey& key) {
  const CipherContext context = NewContext();
  EVP_CIPHER_CTX_set_flags(context.get(), EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  std::string wrapped(kWrappedKeyBytes, '\0');
  int size = 0;
  const bool ok = EVP_EncryptInit_ex2(context.get(), KeyWrap(), wrapping_key.data(), nullptr, nullptr) == 1 &&
                  EVP_EncryptUpdate(context.get(), Bytes(wrapped), &size, key.data(), SecretKey::kBytes) == 1 &&
                  size == static_cast<int>(kWrappedKeyBytes);
  if (!ok) return CryptoFailure();
  return wrapped;
}

Result<SecretKey> UnwrapKey(const SecretKey& wrapping_key, std::string_view wrapped) {
  const CipherContext context = NewContext();
  EVP_CIPHER_CTX_set_flags(context.get(), EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  std::array<char, kWrappedKeyBytes> bytes{};  // libcrypto may use the eight bytes beyond the key
  int size = 0;
  if (EVP_DecryptInit_ex2(context.get(), KeyWrap(), wrapping_key.data(), nullptr, nullptr) != 1) return CryptoFailure();
  const bool ok = EVP_DecryptUpdate(context.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size,
                                    Bytes(wrapped), static_cast<int>(wrapped.size())) == 1 &&
                  size == static_cast<int>(SecretKey::kBytes);
  auto key = SecretKey::FromBytes({bytes.data(), SecretKey::kBytes});
  WipeBytes(bytes.data(), bytes.size());
  if (!ok || !key) {
    ERR_clear_error();
    return Fail(ErrorCode::kCorruption, "the content key was not wrapped by this key");
  }
  return *std::move(key);
}

}  // namespace reprise
