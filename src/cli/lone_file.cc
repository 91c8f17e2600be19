#include "cli/lone_file.h"

#include <optional>
#include <string_view>

#include "cli/chat_reader.h"
#include "cli/key_access.h"
#include "crypto/jwe.h"
#include "engine/run_journal.h"
#include "store/file_journal.h"
#include "store/record.h"

namespace reprise {
namespace {

Error KeyNeeded(const std::string& path) {
  return {.code = ErrorCode::kForbidden,
          .reason = "key_needed",
          .message = "the file is sealed and there is no key file",
          .detail = path};
}

// None for a plain file, and if there is no key file. What is plain must not cost a passphrase.
Result<std::optional<KeySet>> KeysIfSealed(std::string_view text, const Options& options) {
  if (!LooksLikeJwe(text)) return std::optional<KeySet>();
  auto keys = LoadKeyFile(KeyFileOf(options), Disk(), PassphraseFrom(options));
  if (keys) return std::optional<KeySet>(*std::move(keys));
  if (keys.error().code == ErrorCode::kNotFound) return std::optional<KeySet>();
  return Fail(std::move(keys.error()));
}

Result<LoneFile> ReadJournal(const std::string& path, std::string_view text, const RecordPlace& place,
                             const KeySet* keys) {
  const bool sealed = LooksLikeJwe(text.substr(0, text.find('\n')));
  if (sealed && keys == nullptr) return Fail(KeyNeeded(path));
  const auto content = ReadJournalText(text, place, sealed ? keys : nullptr);
  if (!content) return Fail(content.error());
  LoneFile file{.text = {}, .cut_off = content->cut_off};
  for (const std::string& record : content->records) {
    auto lines = JournalRecordAsJson(record);
    if (!lines) return Fail(std::move(lines.error()));
    file.text += *lines;
  }
  return file;
}

}  // namespace

Result<LoneFile> ReadLoneFile(const std::string& path, const Options& options) {
  const auto text = Disk().ReadFile(path, kMaxRecordBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "there is no file " + path);
  }
  if (!text) return Fail(text.error());
  const std::string_view first_line = std::string_view(*text).substr(0, text->find('\n'));
  auto keys = KeysIfSealed(first_line, options);
  if (!keys) return Fail(std::move(keys.error()));
  const KeySet* usable = *keys ? &**keys : nullptr;
  if (const auto place = JournalCipher::ClaimedPlace(first_line)) return ReadJournal(path, *text, *place, usable);
  auto record = ReadRecordFile(path, usable, Disk());
  if (!record) return Fail(std::move(record.error()));
  if (!record->plaintext.ends_with('\n')) record->plaintext += '\n';
  return LoneFile{.text = std::move(record->plaintext)};
}

}  // namespace reprise
