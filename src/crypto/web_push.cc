#include "crypto/web_push.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/system.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::size_t kScalarBytes = 32, kPointBytes = 65, kHashBytes = 32;
constexpr std::size_t kPushSaltBytes = 16, kAesKeyBytes = 16, kNonceBytes = 12, kTagBytes = 16;
constexpr std::uint32_t kRecordSize = 4096;  // that every push service takes

struct FreedWithKeys {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
  void operator()(BIGNUM* number) const { BN_clear_free(number); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
  void operator()(EC_GROUP* group) const { EC_GROUP_free(group); }
  void operator()(EC_POINT* point) const { EC_POINT_free(point); }
};
template <typename T>
using Held = std::unique_ptr<T, FreedWithKeys>;

const unsigned char* BytesIn(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* BytesIn(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// The point that belongs to the private key; empty if that is not within the curve's order.
std::string PointOf(const BIGNUM* scalar) {
  const Held<EC_GROUP> group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  if (!group || BN_is_zero(scalar) || BN_cmp(scalar, EC_GROUP_get0_order(group.get())) >= 0) return {};
  const Held<EC_POINT> point(EC_POINT_new(group.get()));
  std::string text(kPointBytes, '\0');
  const bool is_made = point && EC_POINT_mul(group.get(), point.get(), scalar, nullptr, nullptr, nullptr) == 1 &&
                       EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, BytesIn(text),
                                          text.size(), nullptr) == text.size();
  return is_made ? text : std::string();
}

// Null if the point is not on the curve. Without a scalar it is a public key.
Held<EVP_PKEY> CurveKeyOf(std::string_view point, const BIGNUM* scalar) {
  if (point.size() != kPointBytes || point[0] != POINT_CONVERSION_UNCOMPRESSED) return nullptr;
  const Held<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  if (!builder) return nullptr;
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
  if (scalar != nullptr) OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, scalar);
  const Held<OSSL_PARAM> parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  const Held<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters && context && EVP_PKEY_fromdata_init(context.get()) == 1) {
    const int kind = scalar != nullptr ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY;
    EVP_PKEY_fromdata(context.get(), &key, kind, parameters.get());
  }
  return Held<EVP_PKEY>(key);
}

std::string HmacOf(std::string_view key, std::string_view text) {
  std::string mac(kHashBytes, '\0');
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), BytesIn(text), text.size(), BytesIn(mac), &size) ==
          nullptr ||
      size != mac.size()) {
    std::abort();  // only without memory, or with a libcrypto that has no SHA-256
  }
  return mac;
}

// HKDF (RFC 5869) for at most one hash of output.
std::string DerivePushKey(std::string_view salt, std::string_view secret, std::string_view purpose, std::size_t size) {
  return HmacOf(HmacOf(salt, secret), std::string(purpose) + '\x01').substr(0, size);
}

// The ciphertext and its tag.
std::string SealAes128(std::string_view key, std::string_view nonce, std::string_view text) {
  const Held<EVP_CIPHER_CTX> context(EVP_CIPHER_CTX_new());
  std::string sealed(text.size() + kTagBytes, '\0');
  int done = 0, rest = 0;
  if (!context || EVP_EncryptInit_ex2(context.get(), EVP_aes_128_gcm(), BytesIn(key), BytesIn(nonce), nullptr) != 1 ||
      EVP_EncryptUpdate(context.get(), BytesIn(sealed), &done, BytesIn(text), static_cast<int>(text.size())) != 1 ||
      EVP_EncryptFinal_ex(context.get(), BytesIn(sealed) + done, &rest) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, BytesIn(sealed) + text.size()) != 1) {
    std::abort();  // likewise
  }
  return sealed;
}

}  // namespace

P256KeyPair P256KeyPair::Random() {
  for (;;) {  // almost every number is a private key
    if (auto key = FromSecret(SecretKey::Random())) return *std::move(key);
  }
}

std::optional<P256KeyPair> P256KeyPair::FromSecret(const SecretKey& secret) {
  const Held<BIGNUM> scalar(BN_bin2bn(secret.data(), SecretKey::kBytes, nullptr));
  std::string point = scalar ? PointOf(scalar.get()) : std::string();
  Held<EVP_PKEY> key = point.empty() ? nullptr : CurveKeyOf(point, scalar.get());
  if (!key) return std::nullopt;
  return P256KeyPair(std::make_shared<const SecretKey>(secret.Clone()), std::shared_ptr<EVP_PKEY>(std::move(key)),
                     std::move(point));
}

std::string P256KeyPair::Sign(std::string_view message) const {
  const Held<EVP_MD_CTX> context(EVP_MD_CTX_new());
  auto* const key = static_cast<EVP_PKEY*>(key_.get());
  std::array<unsigned char, 80> der{};
  std::size_t size = der.size();
  if (!context || EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), der.data(), &size, BytesIn(message), message.size()) != 1) {
    std::abort();
  }
  const unsigned char* at = der.data();
  const Held<ECDSA_SIG> both(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)));
  std::string signature(2 * kScalarBytes, '\0');
  if (!both || BN_bn2binpad(ECDSA_SIG_get0_r(both.get()), BytesIn(signature), kScalarBytes) < 0 ||
      BN_bn2binpad(ECDSA_SIG_get0_s(both.get()), BytesIn(signature) + kScalarBytes, kScalarBytes) < 0) {
    std::abort();
  }
  return signature;
}

std::optional<std::string> P256KeyPair::Agree(std::string_view public_key) const {
  const Held<EVP_PKEY> other = CurveKeyOf(public_key, nullptr);
  const Held<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new(static_cast<EVP_PKEY*>(key_.get()), nullptr));
  std::string shared(kScalarBytes, '\0');
  std::size_t size = shared.size();
  if (!other || !context || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer(context.get(), other.get()) != 1 ||
      EVP_PKEY_derive(context.get(), BytesIn(shared), &size) != 1 || size != shared.size()) {
    return std::nullopt;
  }
  return shared;
}

std::optional<PushRecipient> PushRecipient::Parse(std::string_view p256dh, std::string_view auth) {
  auto point = DecodeBase64Url(p256dh);
  auto secret = DecodeBase64Url(auth);
  if (!point || !secret || secret->size() != kAuthBytes || !CurveKeyOf(*point, nullptr)) return std::nullopt;
  return PushRecipient{.public_key = *std::move(point), .auth = *std::move(secret)};
}

std::optional<std::string> SealPush(const PushRecipient& recipient, std::string_view message, std::size_t padded_to) {
  std::string salt(kPushSaltBytes, '\0');
  FillRandom(salt.data(), salt.size());
  return SealPush(recipient, message, padded_to, P256KeyPair::Random(), salt);
}

std::optional<std::string> SealPush(const PushRecipient& recipient, std::string_view message, std::size_t padded_to,
                                    const P256KeyPair& sender, std::string_view salt) {
  using namespace std::string_literals;
  const auto shared = sender.Agree(recipient.public_key);
  const std::size_t size = std::max(message.size(), padded_to);
  if (!shared || size + 1 + kTagBytes > kRecordSize || salt.size() != kPushSaltBytes) return std::nullopt;
  const std::string both = recipient.public_key + sender.public_key();
  const std::string secret = DerivePushKey(recipient.auth, *shared, "WebPush: info\0"s + both, kHashBytes);
  const std::string key = DerivePushKey(salt, secret, "Content-Encoding: aes128gcm\0"s, kAesKeyBytes);
  const std::string nonce = DerivePushKey(salt, secret, "Content-Encoding: nonce\0"s, kNonceBytes);

  std::string text(message);
  text += '\x02';  // the last record
  text.resize(size + 1);
  std::string body(salt);
  for (int shift = 24; shift >= 0; shift -= 8) body += static_cast<char>(kRecordSize >> shift & 0xff);
  body += static_cast<char>(kPointBytes);
  return body + sender.public_key() + SealAes128(key, nonce, text);
}

}  // namespace reprise
