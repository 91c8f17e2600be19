#include "store/journal_cipher.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/try.h"
#include "crypto/aes_gcm.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"

namespace reprise {
namespace {

constexpr int kJournalVersion = 1;
constexpr std::string_view kJournalType = "reprise/journal";
static_assert(JournalCipher::kOverhead == kGcmTagBytes);

Json HeaderMembers(const RecordPlace& place) {
  return {{"typ", kJournalType},
          {"ver", kJournalVersion},
          {"chat_id", place.chat.str()},
          {"interaction_id", place.interaction->str()}};
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

// Of a plain record: whether the disk has got all of it.
std::string Checksum(std::string_view record) {
  return Sha256Digest({record}).substr(std::string_view("sha256:").size(), JournalCipher::kOverhead);
}

}  // namespace

Result<JournalCipher> JournalCipher::Create(const RecordPlace& place, const KeySet* keys) {
  if (keys == nullptr) return JournalCipher(DumpJson(HeaderMembers(place)), std::nullopt);
  SecretKey key = SecretKey::Random();
  auto header = TRY(SealJwe(HeaderMembers(place), key.bytes(), *keys));
  return JournalCipher(std::move(header), std::move(key));
}

Result<JournalCipher> JournalCipher::FromHeader(const RecordPlace& place, std::string_view header, const KeySet* keys) {
  if (keys == nullptr) {
    if (LooksLikeJwe(header)) return Fail(IntegrityError("sealed", place, "the journal is sealed"));
    TRY(CheckMembers(place, header));
    return JournalCipher(std::string(header), std::nullopt);
  }
  if (!LooksLikeJwe(header) && ClaimedPlace(header)) {
    return Fail(IntegrityError("plain", place, "the journal is not sealed, and this data folder is"));
  }
  auto opened = OpenJwe(header, *keys);
  if (!opened) return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  TRY(CheckMembers(place, opened->protected_header));
  auto key = SecretKey::FromBytes(opened->plaintext);
  WipeBytes(opened->plaintext.data(), opened->plaintext.size());
  if (!key) return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  return JournalCipher(std::string(header), std::move(key));
}

std::optional<RecordPlace> JournalCipher::ClaimedPlace(std::string_view header) {
  const auto json = LooksLikeJwe(header) ? ReadJweHeader(header) : ParseJson(header);
  if (!json || !json->is_object()) return std::nullopt;
  const auto text = [&](const char* name) {
    const auto member = json->find(name);
    return member != json->end() && member->is_string() ? member->get<std::string>() : std::string();
  };
  const auto chat = ChatId::Parse(text("chat_id"));
  const auto interaction = InteractionId::Parse(text("interaction_id"));
  if (text("typ") != kJournalType || !chat || !interaction) return std::nullopt;
  return RecordPlace{.chat = *chat, .interaction = *interaction};
}

Result<void> JournalCipher::Seal(std::string& out, std::uint64_t position, std::string_view associated,
                                 std::string_view record) const {
  if (key_) return GcmSealTo(out, *key_, IvAt(position), associated, record);
  out.append(record).append(Checksum(record));
  return {};
}

Result<std::string> JournalCipher::Open(std::uint64_t position, std::string_view associated,
                                        std::string_view sealed) const {
  if (sealed.size() < kOverhead) return Fail(ErrorCode::kCorruption, "not a record");
  const std::string_view record = sealed.substr(0, sealed.size() - kOverhead), tag = sealed.substr(record.size());
  if (key_) return GcmOpen(*key_, associated, IvAt(position), std::string(record), tag);
  if (tag != Checksum(record)) return Fail(ErrorCode::kCorruption, "the record does not fit its checksum");
  return std::string(record);
}

}  // namespace reprise
