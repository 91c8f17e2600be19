#include "crypto/public_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr int kLeastRsaBits = 2048, kMostRsaBits = 8192;
constexpr std::size_t kCoordinate = 32;  // of P-256; also half an ES256 signature
constexpr std::size_t kEd25519Key = 32;

constexpr std::string_view kRs256 = "RS256", kEs256 = "ES256", kEdDsa = "EdDSA";

struct Freed {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

tl::unexpected<Error> NotUsable(std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); }

const unsigned char* Octets(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

Owned<BIGNUM> Number(std::string_view big_endian) {
  return Owned<BIGNUM>(BN_bin2bn(Octets(big_endian), static_cast<int>(big_endian.size()), nullptr));
}

Result<std::string> BytesOf(const Json& jwk, const char* name) {
  const Json& member = MemberOf(jwk, name);
  auto bytes = member.is_string() ? DecodeBase64Url(member.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes || bytes->empty()) return NotUsable("\"" + std::string(name) + "\" is not base64url");
  return *std::move(bytes);
}

// Null if the parameters are not a valid key of that type.
Owned<EVP_PKEY> KeyFrom(const char* type, OSSL_PARAM_BLD* builder) {
  const Owned<OSSL_PARAM> parameters(OSSL_PARAM_BLD_to_param(builder));
  const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters && context && EVP_PKEY_fromdata_init(context.get()) == 1) {
    EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get());
  }
  return Owned<EVP_PKEY>(key);
}

Result<Owned<EVP_PKEY>> RsaKey(const Json& jwk) {
  const auto modulus = TRY(BytesOf(jwk, "n"));
  const auto exponent = TRY(BytesOf(jwk, "e"));
  if (modulus.size() > kMostRsaBits / 8) return NotUsable("an RSA key of more than 8192 bits");
  const Owned<BIGNUM> n = Number(modulus), e = Number(exponent);
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  if (!n || !e || !builder) return NotUsable("no RSA key");
  if (BN_num_bits(n.get()) < kLeastRsaBits) return NotUsable("an RSA key of less than 2048 bits");
  // With e = 1 anybody can sign; long exponents only slow down checking.
  constexpr int kMostExponentBits = 33;
  if (BN_is_one(e.get()) || !BN_is_odd(e.get()) || BN_num_bits(e.get()) > kMostExponentBits) {
    return NotUsable("an RSA key with an unusual exponent");
  }
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  auto key = KeyFrom("RSA", builder.get());
  if (!key) return NotUsable("no RSA key");
  return key;
}

Result<Owned<EVP_PKEY>> P256Key(const Json& jwk) {
  if (TextMember(jwk, "crv") != "P-256") return NotUsable("a curve other than P-256");
  const auto x = TRY(BytesOf(jwk, "x"));
  const auto y = TRY(BytesOf(jwk, "y"));
  if (x.size() != kCoordinate || y.size() != kCoordinate) return NotUsable("no point of P-256");
  constexpr char kUncompressed = 4;
  const std::string point = kUncompressed + x + y;
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  if (!builder) return NotUsable("no point of P-256");
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
  auto key = KeyFrom("EC", builder.get());  // null for a point off the curve
  if (!key) return NotUsable("no point of P-256");
  return key;
}

Result<Owned<EVP_PKEY>> Ed25519Key(const Json& jwk) {
  if (TextMember(jwk, "crv") != "Ed25519") return NotUsable("a curve other than Ed25519");
  const auto x = TRY(BytesOf(jwk, "x"));
  Owned<EVP_PKEY> key(
      x.size() == kEd25519Key ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Octets(x), x.size()) : nullptr);
  if (!key) return NotUsable("no Ed25519 key");
  return key;
}

// JWS concatenates r and s (RFC 7518, section 3.4), OpenSSL wants them in DER.
std::optional<std::string> InDer(std::string_view signature) {
  if (signature.size() != 2 * kCoordinate) return std::nullopt;
  const Owned<ECDSA_SIG> both(ECDSA_SIG_new());
  Owned<BIGNUM> r = Number(signature.substr(0, kCoordinate)), s = Number(signature.substr(kCoordinate));
  if (!both || !r || !s || ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return std::nullopt;
  static_cast<void>(r.release()), static_cast<void>(s.release());  // the signature owns them now
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return text;
}

// Whether "use" and "key_ops", as far as present, allow checking signatures.
bool IsForSignatures(const Json& jwk) {
  const Json& use = MemberOf(jwk, "use");
  if (!use.is_null() && use != "sig") return false;
  const Json& operations = MemberOf(jwk, "key_ops");
  return operations.is_null() ||
         (operations.is_array() && std::find(operations.begin(), operations.end(), "verify") != operations.end());
}

}  // namespace

Result<PublicKey> PublicKey::FromJwk(const Json& jwk) {
  if (!jwk.is_object()) return NotUsable("no JWK");
  if (!IsForSignatures(jwk)) return NotUsable("a key that is not for signatures");
  const std::string type = TextMember(jwk, "kty");
  const std::string_view algorithm = type == "RSA" ? kRs256 : type == "EC" ? kEs256 : type == "OKP" ? kEdDsa : "";
  if (algorithm.empty()) return NotUsable("a key of a type other than RSA, EC and OKP");
  const Json& said = MemberOf(jwk, "alg");
  if (!said.is_null() && said != algorithm)
    return NotUsable("a key for an algorithm other than " + std::string(algorithm));
  auto key = TRY(type == "RSA" ? RsaKey(jwk) : type == "EC" ? P256Key(jwk) : Ed25519Key(jwk));
  return PublicKey(algorithm, std::shared_ptr<EVP_PKEY>(std::move(key)));
}

std::optional<PublicKey> PublicKey::FromEd25519(std::string_view bytes) {
  EVP_PKEY* const key = bytes.size() == kEd25519Key
                            ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Octets(bytes), bytes.size())
                            : nullptr;
  if (key == nullptr) return std::nullopt;
  return PublicKey(kEdDsa, std::shared_ptr<EVP_PKEY>(Owned<EVP_PKEY>(key)));
}

bool PublicKey::Verifies(std::string_view message, std::string_view signature) const {
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  auto* const key = static_cast<EVP_PKEY*>(key_.get());
  const EVP_MD* const digest = algorithm_ == kEdDsa ? nullptr : EVP_sha256();
  if (!context || EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) != 1) return false;
  std::string der;
  if (algorithm_ == kEs256) {
    auto converted = InDer(signature);
    if (!converted) return false;
    der = *std::move(converted);
    signature = der;
  }
  return EVP_DigestVerify(context.get(), Octets(signature), signature.size(), Octets(message), message.size()) == 1;
}

}  // namespace reprise
