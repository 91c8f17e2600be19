#include "archive/lone_file.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/key_access.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "base/utf8.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "engine/run_journal.h"
#include "store/file_interaction_store.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/linked_state.h"
#include "store/record.h"

namespace reprise {
namespace {

Error KeyNeeded(const std::string& path) {
  return Refused(Reason::kKeyNeeded, "the file is sealed and there is no key file", path);
}

// Null for a plain file, which must not cost a passphrase, and if there is no key file.
Result<std::shared_ptr<const KeySet>> KeysIfSealed(std::string_view text, const Options& options) {
  if (!LooksLikeJwe(text)) return nullptr;
  auto keys = LoadKeyFile(KeyFileOf(options), Disk(), PassphraseFrom(options));
  if (keys) return std::make_shared<const KeySet>(*std::move(keys));
  if (keys.error().code == ErrorCode::kNotFound) return nullptr;
  return Fail(std::move(keys.error()));
}

// An interaction in its folder, with the earlier states that its own continues.
Result<std::string> ReadWhole(const PlaceInStore& place, std::shared_ptr<const KeySet> keys) {
  auto store = TRY(FileInteractionStore::Open({.root = place.root,
                                               .keys = std::move(keys),
                                               .file_system = Disk(),
                                               .access = FileInteractionStore::Access::kReadOnly}));
  return store->LoadInteraction(place.chat, *place.interaction).map([](const Interaction& interaction) {
    return DumpJson(ToJson(interaction));
  });
}

Result<LoneFile> ReadJournal(const std::string& path, std::string_view text, const RecordPlace& place,
                             const KeySet* keys) {
  const bool sealed = LooksLikeJwe(text.substr(0, text.find('\n')));
  if (sealed && keys == nullptr) return Fail(KeyNeeded(path));
  const auto content = TRY(ReadJournalText(text, place, sealed ? keys : nullptr));
  LoneFile file{.text = {}, .cut_off = content.cut_off};
  for (const std::string& record : content.records) {
    auto lines = TRY(JournalRecordAsJson(record));
    file.text += lines;
  }
  return file;
}

// A server's own or unfinished file need not be JSON, so it is shown as a JSON string.
bool IsServersOwn(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string name = file.filename().string();
  return name == ".running" || name == ".lock" || IsTemporaryName(name);
}

}  // namespace

Result<LoneFile> ReadLoneFile(const std::string& path, const Options& options) {
  const auto text = Disk().ReadFile(path, kMaxRecordBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "there is no file " + path);
  }
  if (!text) return Fail(text.error());
  if (IsServersOwn(path)) return LoneFile{.text = DumpJson(Json(ToValidUtf8(*text))) + "\n"};
  const std::string_view first_line = std::string_view(*text).substr(0, text->find('\n'));
  const auto keys = TRY(KeysIfSealed(first_line, options));
  if (const auto place = JournalCipher::ClaimedPlace(first_line)) return ReadJournal(path, *text, *place, keys.get());
  auto record = TRY(ReadRecordFile(path, keys.get(), Disk()));
  LoneFile file{.text = std::move(record.plaintext)};
  file.is_part = HasLinkedState(file.text);
  const auto place = ParseStorePath(path);
  if (file.is_part && place && place->kind == PlaceInStore::Kind::kCheckpoint) {
    auto whole = TRY(ReadWhole(*place, keys));
    file = LoneFile{.text = std::move(whole)};
  }
  if (!file.text.ends_with('\n')) file.text += '\n';
  return file;
}

Result<Interaction> ReadLoneInteraction(const std::string& path, const Options& options) {
  const auto file = TRY(ReadLoneFile(path, options));
  auto interaction =
      ParseJson(file.text, 2 * kMaxJsonDepth).and_then([](const Json& json) { return InteractionFromJson(json); });
  if (interaction) return interaction;
  return Fail(ErrorCode::kInvalidArgument, path + " is not a finished interaction (`reprise cat` prints what it is)");
}

}  // namespace reprise
