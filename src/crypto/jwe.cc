#include "crypto/jwe.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/modes.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {

namespace {

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

CipherContext NewContext() {
  CipherContext context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  if (!context) std::abort();  // out of memory
  return context;
}

// Fetched once, because a fetch takes a lock and searches the providers.
const EVP_CIPHER* Gcm() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  return cipher;
}
const EVP_CIPHER* Blocks() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-ECB", nullptr);
  return cipher;
}

// libcrypto's own key wrap (AES-256-WRAP) does not use the machine's instructions for AES, and takes ten times as long
// as this: its wrap over its block cipher, which does.
bool StartBlocks(const CipherContext& context, const SecretKey& key, int encrypts) {
  return EVP_CipherInit_ex2(context.get(), Blocks(), key.data(), nullptr, encrypts, nullptr) == 1 &&
         EVP_CIPHER_CTX_set_padding(context.get(), 0) == 1;
}
void CipherBlock(const unsigned char in[16], unsigned char out[16], const void* context) {
  int size = 0;
  auto* const cipher = static_cast<EVP_CIPHER_CTX*>(const_cast<void*>(context));
  if (EVP_CipherUpdate(cipher, out, &size, in, 16) != 1 || size != 16) std::abort();  // not after StartBlocks
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
  if (!StartBlocks(context, wrapping_key, /*encrypts=*/1)) return CryptoFailure();
  std::string wrapped(kWrappedKeyBytes, '\0');
  const std::size_t size =
      CRYPTO_128_wrap(context.get(), nullptr, Bytes(wrapped), key.data(), SecretKey::kBytes, &CipherBlock);
  if (size != kWrappedKeyBytes) return CryptoFailure();
  return wrapped;
}

Result<SecretKey> UnwrapKey(const SecretKey& wrapping_key, std::string_view wrapped) {
  const CipherContext context = NewContext();
  if (!StartBlocks(context, wrapping_key, /*encrypts=*/0)) return CryptoFailure();
  std::array<char, kWrappedKeyBytes> bytes{};  // libcrypto may use the eight bytes beyond the key
  const bool ok = wrapped.size() == kWrappedKeyBytes &&
                  CRYPTO_128_unwrap(context.get(), nullptr, reinterpret_cast<unsigned char*>(bytes.data()),
                                    Bytes(wrapped), wrapped.size(), &CipherBlock) == SecretKey::kBytes;
  auto key = SecretKey::FromBytes({bytes.data(), SecretKey::kBytes});
  WipeBytes(bytes.data(), bytes.size());
  if (!ok || !key) {
    ERR_clear_error();
    return Fail(ErrorCode::kCorruption, "the content key was not wrapped by this key");
  }
  return *std::move(key);
}

namespace {

constexpr std::string_view kAlg = "A256KW";
constexpr std::string_view kEnc = "A256GCM";
constexpr std::size_t kMaxHeaderChars = 16 * 1024;

tl::unexpected<Error> Refuse(std::string message) { return Fail(ErrorCode::kCorruption, std::move(message)); }

// The members of a flattened JWE as written; data() is null for a missing one.
struct Envelope {
  std::string_view protected_header, kid, encrypted_key, iv, ciphertext, tag;
};

// Cuts out the members without a JSON parser, which takes ten times as long as decryption for a string of a megabyte.
// It ignores escapes because no valid value needs one: decoding (base64url) or lookup (kid) fails on them.
class EnvelopeScanner {
 public:
  explicit EnvelopeScanner(std::string_view text) : text_(text) {}

  std::optional<Envelope> Scan() {
    Envelope envelope;
    const bool whole = Object([&](std::string_view name) {
      if (name == "header") return Object([&](std::string_view inner) { return inner == "kid" && Text(envelope.kid); });
      std::string_view* member = MemberOf(envelope, name);
      return member != nullptr && Text(*member);
    });
    SkipSpace();
    const bool complete = envelope.protected_header.data() != nullptr && envelope.kid.data() != nullptr &&
                          envelope.encrypted_key.data() != nullptr && envelope.iv.data() != nullptr &&
                          envelope.ciphertext.data() != nullptr && envelope.tag.data() != nullptr;
    if (!whole || at_ != text_.size() || !complete) return std::nullopt;
    return envelope;
  }

 private:
  static std::string_view* MemberOf(Envelope& envelope, std::string_view name) {
    if (name == "protected") return &envelope.protected_header;
    if (name == "encrypted_key") return &envelope.encrypted_key;
    if (name == "iv") return &envelope.iv;
    if (name == "ciphertext") return &envelope.ciphertext;
    if (name == "tag") return &envelope.tag;
    return nullptr;
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<std::string_view> String() {
    if (!Take('"')) return std::nullopt;
    const std::size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  // Fails if the member was there already.
  bool Text(std::string_view& member) {
    const auto value = String();
    if (!value || member.data() != nullptr) return false;
    member = *value;
    return true;
  }
  template <typename OnMember>
  bool Object(OnMember on_member) {
    if (!Take('{')) return false;
    do {
      const auto name = String();
      if (!name || !Take(':') || !on_member(*name)) return false;
    } while (Take(','));
    return Take('}');
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

Result<Envelope> ScanEnvelope(std::string_view text) {
  auto envelope = EnvelopeScanner(text).Scan();
  if (!envelope) return Refuse("not a complete sealed record");
  return *envelope;
}

Result<std::string> HeaderText(const Envelope& envelope) {
  if (envelope.protected_header.size() > kMaxHeaderChars) return Refuse("the protected header is too long");
  auto text = DecodeBase64Url(envelope.protected_header);
  if (!text) return Refuse("the protected header is not base64url");
  return *std::move(text);
}

bool Says(const Json& header, const char* name, std::string_view value) {
  const auto member = header.find(name);
  return member != header.end() && member->is_string() && member->get_ref<const std::string&>() == value;
}

Result<Json> ParseHeader(const std::string& text) {
  auto header = ParseJson(text);
  if (!header || !header->is_object()) return Refuse("the protected header is not a JSON object");
  if (!Says(*header, "alg", kAlg) || !Says(*header, "enc", kEnc)) return Refuse("sealed by an unsupported algorithm");
  for (const char* name : {"crit", "zip", "kid"}) {
    if (header->contains(name)) return Refuse("the protected header asks for an unsupported feature");
  }
  return header;
}

Result<std::string> DecodeSized(std::string_view text, std::size_t bytes, std::string_view what) {
  auto decoded = DecodeBase64Url(text);
  if (!decoded || decoded->size() != bytes) return Refuse(std::string(what) + " is malformed");
  return *std::move(decoded);
}

void AppendMember(std::string& out, std::string_view name, std::string_view bytes) {
  out.append(",\"").append(name).append("\":\"");
  AppendBase64Url(out, bytes);
  out += '"';
}

}  // namespace

Result<std::string> SealJwe(const Json& protected_members, std::string_view plaintext, const KeySet& keys) {
  return SealJweUnder(DumpJson(protected_members), plaintext, keys);
}

Result<std::string> SealJweUnder(std::string_view members, std::string_view plaintext, const KeySet& keys) {
  std::string header;
  AppendJsonObject(header, [&](auto& object) {
    object["alg"] = kAlg;
    object["enc"] = kEnc;
    if (members.size() > 2) header.append(1, ',').append(members.substr(1, members.size() - 2));
    if (!keys.tenant().empty()) object["tenant"] = keys.tenant();
  });
  const std::string protected_header = EncodeBase64Url(header);

  const SecretKey content_key = SecretKey::Random();
  auto wrapped = TRY(WrapKey(keys.current().secret, content_key));
  auto sealed = TRY(GcmSeal(content_key, protected_header, plaintext));

  std::string text;
  text.reserve(protected_header.size() + sealed.ciphertext.size() / 3 * 4 + 512);
  text.append(R"({"protected":")").append(protected_header);
  text.append(R"(","header":{"kid":")").append(keys.current().kid).append("\"}");
  AppendMember(text, "encrypted_key", wrapped);
  AppendMember(text, "iv", sealed.iv);
  AppendMember(text, "ciphertext", sealed.ciphertext);
  AppendMember(text, "tag", sealed.tag);
  text += '}';
  return text;
}

Result<OpenedJwe> OpenJwe(std::string_view text, const KeySet& keys) {
  const auto envelope = TRY(ScanEnvelope(text));
  auto header_text = TRY(HeaderText(envelope));
  const auto header = TRY(ParseHeader(header_text));
  const KeySet::Key* key = keys.Find(envelope.kid);
  if (key == nullptr) return Refuse("sealed by a key that is not in the key file");

  auto wrapped = TRY(DecodeSized(envelope.encrypted_key, kWrappedKeyBytes, "the wrapped key"));
  auto iv = TRY(DecodeSized(envelope.iv, kGcmIvBytes, "the IV"));
  auto tag = TRY(DecodeSized(envelope.tag, kGcmTagBytes, "the tag"));
  auto ciphertext = DecodeBase64Url(envelope.ciphertext);
  if (!ciphertext) return Refuse("the ciphertext is not base64url");

  const auto content_key = UnwrapKey(key->secret, wrapped);
  if (!content_key) return Fail(content_key.error());
  auto plaintext = TRY(GcmOpen(*content_key, envelope.protected_header, iv, *std::move(ciphertext), tag));
  const bool is_ours = keys.tenant().empty() ? !header.contains("tenant") : Says(header, "tenant", keys.tenant());
  if (!is_ours) {
    WipeBytes(plaintext.data(), plaintext.size());
    return Fail(Reason::kIntegritySwap, "it was sealed for another user than the owner of these chats");
  }
  return OpenedJwe{.protected_header = std::move(header_text), .plaintext = std::move(plaintext), .kid = key->kid};
}

Result<std::string> RewrapJwe(std::string_view text, const KeySet& keys) {
  auto opened = OpenJwe(text, KeysOfRecord(text, keys));  // opens all, because a damaged record must stay as it is
  if (!opened) return Fail(std::move(opened.error()));
  WipeBytes(opened->plaintext.data(), opened->plaintext.size());  // a journal's is a key
  const Envelope envelope = *ScanEnvelope(text);
  if (envelope.kid == keys.current().kid) return std::string(text);

  const auto wrapped = TRY(DecodeSized(envelope.encrypted_key, kWrappedKeyBytes, "the wrapped key"));
  const auto content_key = UnwrapKey(keys.Find(envelope.kid)->secret, wrapped);
  if (!content_key) return Fail(content_key.error());
  const auto rewrapped = TRY(WrapKey(keys.current().secret, *content_key));

  const std::string encrypted_key = EncodeBase64Url(rewrapped);
  std::string result(text);
  const auto replace = [&](std::string_view member, const std::string& value) {
    result.replace(static_cast<std::size_t>(member.data() - text.data()), member.size(), value);
  };
  // Replaces the later member first, because a replacement moves the text after it.
  const bool kid_is_first = envelope.kid.data() < envelope.encrypted_key.data();
  if (kid_is_first) replace(envelope.encrypted_key, encrypted_key);
  replace(envelope.kid, keys.current().kid);
  if (!kid_is_first) replace(envelope.encrypted_key, encrypted_key);
  return result;
}

Result<Json> ReadJweHeader(std::string_view text) {
  return ScanEnvelope(text).and_then(HeaderText).and_then(ParseHeader);
}

KeySet KeysOfRecord(std::string_view text, const KeySet& keys) {
  const auto header = ReadJweHeader(text);
  return keys.BoundTo(header ? TextMember(*header, "tenant") : "");
}

std::optional<std::string> KeyIdOf(std::string_view text) {
  const auto envelope = EnvelopeScanner(text).Scan();
  return envelope ? std::optional(std::string(envelope->kid)) : std::nullopt;
}

bool LooksLikeJwe(std::string_view text) { return EnvelopeScanner(text).Scan().has_value(); }

Result<std::string> RecordDigest(std::string_view text) {
  return ScanEnvelope(text).map([](const Envelope& envelope) {
    return Sha256Digest({envelope.protected_header, ".", envelope.iv, ".", envelope.ciphertext, ".", envelope.tag});
  });
}

}  // namespace reprise
