#include "store/journal_cipher.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "crypto/aes_gcm.h"
#include "crypto/base64url.h"
#include "crypto/jwe.h"

namespace reprise {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kType = "reprise/journal";

Json HeaderMembers(const RecordPlace& place) {
  return {
      {"typ", kType}, {"ver", kVersion}, {"chat_id", place.chat.str()}, {"interaction_id", place.interaction->str()}};
}

Result<void> CheckMembers(const RecordPlace& place, std::string_view header) {
  const auto json = ParseJson(header);
  if (!json || !json->is_object()) return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  const Json expected = HeaderMembers(place);
  for (const auto& [name, value] : expected.items()) {
    const auto member = json->find(name);
    if (member != json->end() && *member == value) continue;
    return Fail(IntegrityError(name == "ver" ? "version" : "swap", place, "the journal belongs to another place"));
  }
  return {};
}

// The position as a 96-bit big-endian number.
std::string IvAt(std::uint64_t position) {
  std::string iv(kGcmIvBytes, '\0');
  for (std::size_t i = 0; i < sizeof position; ++i) {
    iv[kGcmIvBytes - 1 - i] = static_cast<char>(position >> (8 * i) & 0xff);
  }
  return iv;
}

}  // namespace

Result<JournalCipher> JournalCipher::Create(const RecordPlace& place, const KeySet* keys) {
  if (keys == nullptr) return JournalCipher(DumpJson(HeaderMembers(place)), std::nullopt);
  SecretKey key = SecretKey::Random();
  auto header = SealJwe(HeaderMembers(place), key.bytes(), *keys);
  if (!header) return Fail(std::move(header.error()));
  return JournalCipher(*std::move(header), std::move(key));
}

Result<JournalCipher> JournalCipher::FromHeader(const RecordPlace& place, std::string_view header, const KeySet* keys) {
  if (keys == nullptr) {
    if (LooksLikeJwe(header)) return Fail(IntegrityError("plain", place, "the journal is sealed"));
    if (auto checked = CheckMembers(place, header); !checked) return Fail(std::move(checked.error()));
    return JournalCipher(std::string(header), std::nullopt);
  }
  auto opened = OpenJwe(header, *keys);
  if (!opened) return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  if (auto checked = CheckMembers(place, opened->protected_header); !checked) return Fail(std::move(checked.error()));
  auto key = SecretKey::FromBytes(opened->plaintext);
  WipeBytes(opened->plaintext.data(), opened->plaintext.size());
  if (!key) return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  return JournalCipher(std::string(header), std::move(key));
}

Result<std::string> JournalCipher::Seal(std::uint64_t position, std::string_view record) const {
  if (!key_) return std::string(record);
  auto sealed = GcmSealAt(*key_, IvAt(position), {}, record);
  if (!sealed) return Fail(std::move(sealed.error()));
  return EncodeBase64Url(sealed->ciphertext + sealed->tag);
}

Result<std::string> JournalCipher::Open(std::uint64_t position, std::string_view line) const {
  if (!key_) return std::string(line);
  auto bytes = DecodeBase64Url(line);
  if (!bytes || bytes->size() < kGcmTagBytes) return Fail(ErrorCode::kCorruption, "not a record");
  const std::string tag = bytes->substr(bytes->size() - kGcmTagBytes);
  bytes->resize(bytes->size() - kGcmTagBytes);
  return GcmOpen(*key_, {}, IvAt(position), *std::move(bytes), tag);
}

}  // namespace reprise
