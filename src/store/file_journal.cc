#include "store/file_journal.h"

#include <nlohmann/json.hpp>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"

namespace reprise {

namespace {

constexpr int kJournalVersion = 1;
constexpr std::string_view kJournalType = "reprise/journal";
static_assert(JournalCipher::kOverhead == kGcmTagBytes);

std::string HeaderMembers(const RecordPlace& place) {
  std::string text;
  AppendJsonObject(text, [&](auto& members) {
    members["typ"] = kJournalType;
    members["ver"] = kJournalVersion;
    members["chat_id"] = place.chat.str();
    members["interaction_id"] = place.interaction->str();
  });
  return text;
}

Result<void> CheckMembers(const RecordPlace& place, std::string_view header) {
  const auto json = ParseJson(header);
  if (!json || !json->is_object()) return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  const Json expected = *ParseJson(HeaderMembers(place));
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

// Of a plain record: shows whether all of it reached the disk.
std::string Checksum(std::string_view record) {
  return Sha256Digest({record}).substr(std::string_view("sha256:").size(), JournalCipher::kOverhead);
}

}  // namespace

Result<JournalCipher> JournalCipher::Create(const RecordPlace& place, const KeySet* keys) {
  if (keys == nullptr) return JournalCipher(HeaderMembers(place), std::nullopt);
  SecretKey key = SecretKey::Random();
  auto header = TRY(SealJweUnder(HeaderMembers(place), key.bytes(), *keys));
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
  if (!json) return std::nullopt;
  const auto chat = ChatId::Parse(TextMember(*json, "chat_id"));
  const auto interaction = InteractionId::Parse(TextMember(*json, "interaction_id"));
  if (TextMember(*json, "typ") != kJournalType || !chat || !interaction) return std::nullopt;
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

namespace {

// The prefix of each record: its size, with the top bit set if it must survive a power loss, and the complement of
// that, both big-endian.
constexpr std::size_t kPrefixBytes = 8;
constexpr std::uint32_t kToDisk = 1u << 31;

constexpr std::size_t kSectorBytes = 512;

// Bytes that did not reach the disk read as zeros; sealed bytes never have so many zeros in a row.
constexpr std::string_view kUnwritten("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);

void PutNumber(char* to, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(number >> (24 - 8 * i) & 0xff);
}

std::uint32_t NumberAt(std::string_view from) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(from[i]);
  return number;
}

// The associated data of a record.
std::string_view AssociatedWith(bool to_disk) { return to_disk ? "synced" : ""; }

struct JournalRecord {
  bool to_disk = false;
  std::string_view bytes;
  std::size_t size = 0;  // with its prefix
};

enum class Damage { kCutOff, kDamaged };

bool HasUnwrittenBytes(std::string_view bytes) { return bytes.find(kUnwritten) != std::string_view::npos; }

// The position after the JSON object that begins `text`, whose strings hold no braces; the end if it is cut off. Behind
// unwritten bytes there is no part of it, but sealed bytes, which may look like one.
std::size_t EndOfObject(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  return text.size();
}

// Whether the last bytes of this file, however few, may not have reached the disk, which writes whole sectors.
bool EndsUnwritten(std::string_view text) {
  return text.find_first_not_of('\0', (text.size() - 1) / kSectorBytes * kSectorBytes) == std::string_view::npos;
}

// Whether some of the first `size` bytes of the rest of a file may not have reached the disk. The zeros may continue
// after them.
bool HasUnwrittenBytes(std::string_view text, std::string_view rest, std::size_t size) {
  const std::string_view around = rest.substr(0, size + kUnwritten.size() - 1);
  return HasUnwrittenBytes(around) || (around.size() == rest.size() && EndsUnwritten(text));
}

// The record at the beginning of `rest`, which is not empty.
tl::expected<JournalRecord, Damage> NextRecord(std::string_view rest) {
  if (rest.size() < kPrefixBytes) return tl::unexpected(Damage::kCutOff);
  const std::uint32_t word = NumberAt(rest);
  if (word != ~NumberAt(rest.substr(4))) {
    // The bytes that reached the disk may end within the prefix.
    const bool unwritten = rest[kPrefixBytes - 1] == '\0' && kUnwritten.starts_with(rest.substr(kPrefixBytes, 16));
    return tl::unexpected(unwritten ? Damage::kCutOff : Damage::kDamaged);
  }
  const std::size_t size = word & ~kToDisk;
  if (size > rest.size() - kPrefixBytes) return tl::unexpected(Damage::kCutOff);
  return JournalRecord{
      .to_disk = (word & kToDisk) != 0, .bytes = rest.substr(kPrefixBytes, size), .size = kPrefixBytes + size};
}

// Whether a record that was synced stands whole in the rest of a file, so that all bytes before it were on the disk,
// too. Goes by the prefixes from `rest` on, which lead from one record to the next until the file's end.
bool BeginsBeforeSynced(std::string_view rest) {
  bool any = false;
  while (!rest.empty()) {
    const auto record = NextRecord(rest);
    if (!record) return any && record.error() == Damage::kCutOff;
    any = any || (record->to_disk && !HasUnwrittenBytes(record->bytes));
    rest.remove_prefix(record->size);
  }
  return any;
}

// The same where no record's beginning is known.
bool HoldsSynced(std::string_view rest) {
  for (; !rest.empty(); rest.remove_prefix(1)) {
    if (BeginsBeforeSynced(rest)) return true;
  }
  return false;
}

// Whether the header, which cannot be read, may have been written when the power failed: it is cut off, or whole
// sectors are missing, and no record proves that it was on the disk.
bool MayBeUnwritten(std::string_view text) {
  const std::size_t hole = text.find('\0'), after = text.find_first_not_of('\0', hole);
  if (hole == std::string_view::npos || after == std::string_view::npos) return true;
  return hole % kSectorBytes == 0 && !HoldsSynced(text.substr(after));
}

}  // namespace

Result<void> JournalFile::Append(std::string_view bytes, Journal::Reach reach) {
  const MutexLock lock(mutex_);
  if (!file_) return Fail(ErrorCode::kIo, "the journal could not be written before");
  auto written = file_->Append(bytes);
  if (written && reach == Journal::Reach::kPowerLoss) written = file_->Sync();
  if (!written) file_.reset();
  return written;
}

void JournalFile::Close() {
  const MutexLock lock(mutex_);
  file_.reset();
}

Result<std::unique_ptr<FileJournal>> FileJournal::Replace(FileSystem& file_system, const std::string& path,
                                                          JournalCipher cipher, const std::vector<std::string>& records,
                                                          SyncNames sync_names) {
  auto journal = std::make_unique<FileJournal>(nullptr, std::move(cipher), std::move(sync_names));
  std::string bytes;
  for (const std::string& record : records) {
    TRY(journal->text_.Append(bytes, record, Reach::kPowerLoss));
  }
  auto file =
      TRY(AtomicFile::Create(file_system, path).and_then([&](AtomicFile made) { return made.CommitOpen(bytes); }));
  journal->file_ = std::make_shared<JournalFile>(std::move(file));
  return journal;
}

Result<void> JournalText::Append(std::string& out, std::string_view record, Journal::Reach reach) {
  if (position_ == 0) out.append(cipher_.header()).push_back('\n');
  const bool to_disk = reach == Journal::Reach::kPowerLoss;
  const std::size_t size = record.size() + JournalCipher::kOverhead;
  if (size >= kToDisk) return Fail(ErrorCode::kTooLarge, "too much data for one record");
  const std::size_t prefix = out.size();
  out.reserve(prefix + kPrefixBytes + size);
  out.append(kPrefixBytes, '\0');
  const std::uint32_t word = static_cast<std::uint32_t>(size) | (to_disk ? kToDisk : 0);
  PutNumber(out.data() + prefix, word);
  PutNumber(out.data() + prefix + 4, ~word);
  return cipher_.Seal(out, position_++, AssociatedWith(to_disk), record);
}

Result<void> FileJournal::Append(std::string_view record, Reach reach) {
  std::string bytes;
  auto written = text_.Append(bytes, record, reach).and_then([&] { return file_->Append(bytes, reach); });
  if (written && reach == Reach::kPowerLoss && sync_names_) {
    written = std::exchange(sync_names_, nullptr)();
    if (!written) file_->Close();  // nothing more can be promised
  }
  return written;
}

Result<JournalContent> ReadJournalFile(FileSystem& file_system, const std::string& path, const RecordPlace& place,
                                       const KeySet* keys) {
  return file_system.ReadFile(path, kMaxRecordBytes).and_then([&](const std::string& text) {
    return ReadJournalText(text, place, keys);
  });
}

Result<void> JournalTextReader::Read(std::string_view piece, std::vector<std::string>& records) {
  const auto damaged = [&] {
    return Fail(
        IntegrityError("auth", place_, "record " + std::to_string(position_ + 1) + " of its journal is damaged"));
  };
  if (!cipher_) {
    const std::size_t end_of_header = piece.find('\n');
    if (end_of_header == std::string_view::npos) return damaged();
    cipher_ = TRY(JournalCipher::FromHeader(place_, piece.substr(0, end_of_header), keys_));
    piece.remove_prefix(end_of_header + 1);
  }
  while (!piece.empty()) {
    const auto sealed = NextRecord(piece);
    if (!sealed) return damaged();
    auto record = cipher_->Open(position_, AssociatedWith(sealed->to_disk), sealed->bytes);
    if (!record) return damaged();
    records.push_back(*std::move(record));
    ++position_;
    piece.remove_prefix(sealed->size);
  }
  return {};
}

Result<JournalContent> ReadJournalText(std::string_view text, const RecordPlace& at, const KeySet* keys) {
  RecordPlace place = at;
  place.is_journal = true;
  const auto damaged = [&](std::uint64_t position) {
    return Fail(IntegrityError("auth", place, "record " + std::to_string(position + 1) + " of its journal is damaged"));
  };
  JournalContent content;
  const std::size_t end_of_header = text.find('\n');
  const bool has_end = end_of_header != std::string_view::npos;
  const std::string_view header = text.substr(0, end_of_header);
  // In a header that was being written when the power failed, only unwritten bytes follow the object.
  const std::size_t end_of_object = EndOfObject(header);
  const bool goes_on = end_of_object < header.size() && header[end_of_object] != '\0';
  if (goes_on || (!has_end && text.find_first_not_of('\0', end_of_object) != text.npos)) {
    return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  }
  content.cut_off = !has_end || HasUnwrittenBytes(header);
  if (content.cut_off && !MayBeUnwritten(text)) {
    return Fail(IntegrityError("auth", place, "the journal's header is damaged"));
  }
  if (content.cut_off) return content;
  const auto cipher = TRY(JournalCipher::FromHeader(place, header, keys));
  std::string_view rest = text.substr(end_of_header + 1);
  for (std::uint64_t position = 0; !rest.empty(); ++position) {
    const auto sealed = NextRecord(rest);
    if (!sealed && (sealed.error() == Damage::kDamaged || HoldsSynced(rest))) return damaged(position);
    auto record = sealed ? cipher.Open(position, AssociatedWith(sealed->to_disk), sealed->bytes) : Fail(Error{});
    if (!record && sealed && (!HasUnwrittenBytes(text, rest, sealed->size) || HoldsSynced(rest.substr(sealed->size)))) {
      return damaged(position);
    }
    if (!record) {
      content.cut_off = true;
      return content;
    }
    content.records.push_back(*std::move(record));
    rest.remove_prefix(sealed->size);
  }
  return content;
}

}  // namespace reprise
