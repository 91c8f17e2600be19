#include "app/chat_keys.h"

#include <functional>
#include <utility>

#include "app/key_access.h"
#include "app/org_keys.h"
#include "base/logging.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/try.h"
#include "postgres/database.h"
#include "postgres/database_keys.h"
#include "postgres/schema.h"
#include "store/data_folder.h"

namespace reprise {
Result<std::shared_ptr<const KeySet>> KeysFor(const Options& options) {
  if (options.plain) return std::shared_ptr<const KeySet>();
  const std::string path = KeyFileOf(options);
  auto keys = LoadKeyFile(path, Disk(), PassphraseFrom(options));
  if (keys) return KeysOfFolder(*std::move(keys), options.data_dir, Disk());
  if (keys.error().code != ErrorCode::kNotFound) return Fail(keys.error());
  return Fail(ErrorCode::kForbidden,
              "there is no key file " + path + " to open the chats with (--key-file, or --plain)");
}

namespace {

Result<void> CheckFolder(const Options& options, const std::string& folder, const KeySet* keys, FolderUse use) {
  const FolderMode mode = options.plain ? FolderMode::kPlain : FolderMode::kSealed;
  auto found = TRY(ReadFolderKeys(folder, mode, keys, Disk()));
  if (use == FolderUse::kGiveUp) found.missing.clear();
  if (use == FolderUse::kReplace) found.plain_chats = 0;
  return CheckFolderKeys(found, mode, folder, KeyFileOf(options));
}

Result<std::unique_ptr<Database>> OpenTables(const Options& options) {
  auto database = TRY(Database::Open({.url = options.store.url}));
  TRY(CheckSchema(*database));
  return database;
}

using KeysCheck = std::function<Result<void>(const KeySet*)>;

// Calls `check` before it makes a key, because the missing one may only be elsewhere.
Result<std::shared_ptr<const KeySet>> KeysThatFit(const Options& options, const std::string& folder,
                                                  const KeysCheck& check) {
  if (options.plain) return check(nullptr).map([] { return std::shared_ptr<const KeySet>(); });
  if (LiesIn(KeyFileOf(options), folder)) {
    return Fail(ErrorCode::kInvalidArgument, "the key file must not lie in the data folder");
  }
  if (!options.passphrase_file.empty() && LiesIn(options.passphrase_file, folder)) {
    return Fail(ErrorCode::kInvalidArgument, "the passphrase file must not lie in the data folder");
  }
  const std::string path = KeyFileOf(options);
  auto keys = LoadKeyFile(path, Disk(), PassphraseFrom(options));
  const bool made = !keys && keys.error().code == ErrorCode::kNotFound;
  if (!keys && !made) return Fail(keys.error());
  std::shared_ptr<const KeySet> of_folder;
  if (!made) of_folder = TRY(KeysOfFolder(*std::move(keys), folder, Disk()));
  TRY(check(of_folder.get()));
  if (!made) return of_folder;
  keys = LoadOrCreateKeyFile(path, Disk(), PassphraseFrom(options));
  if (!keys) return Fail(keys.error());
  LogWarning("a new key was made; keep a copy of its file elsewhere, for without it nobody can open the chats",
             {{"key_file", path}});
  return KeysOfFolder(*std::move(keys), folder, Disk());
}

}  // namespace

Result<std::shared_ptr<const KeySet>> KeysForWriting(const Options& options, const std::string& folder, FolderUse use) {
  return KeysThatFit(options, folder, [&](const KeySet* keys) { return CheckFolder(options, folder, keys, use); });
}

Result<std::shared_ptr<const KeySet>> KeysForServing(const Options& options, FolderUse use) {
  return KeysThatFit(options, options.data_dir, [&](const KeySet* keys) -> Result<void> {
    TRY(CheckFolder(options, options.data_dir, keys, use));
    return CheckKeysOfDatabase(options, keys, use);
  });
}

Result<void> CheckKeysOfDatabase(const Options& options, const KeySet* keys, FolderUse use) {
  if (options.store.type != StoreOptions::Type::kPostgres) return {};
  const auto database = TRY(OpenTables(options));
  FolderKeys found = TRY(ReadDatabaseKeys(*database, keys));
  if (use == FolderUse::kGiveUp) found.missing.clear();
  return CheckDatabaseKeys(found, options.plain ? FolderMode::kPlain : FolderMode::kSealed, KeyFileOf(options));
}

Result<void> GiveUpKeysOfDatabase(const Options& options, const KeySet& keys) {
  if (options.store.type != StoreOptions::Type::kPostgres) return {};
  const auto database = TRY(OpenTables(options));
  const FolderKeys found = TRY(ReadDatabaseKeys(*database, &keys));
  return NoteGivenUpKeys(found, *database, keys);
}

void NoteKeysOf(const std::string& folder, const KeySet* keys) {
  const FolderMode mode = keys == nullptr ? FolderMode::kPlain : FolderMode::kSealed;
  const auto noted = ReadFolderKeys(folder, mode, keys, Disk()).and_then([&](const FolderKeys& found) {
    return NoteFolderKeys(found, folder, keys, Disk());
  });
  // Without it the next start reads the chats themselves.
  if (!noted) LogWarning("the folder's keys could not be recorded", {{"error", noted.error().message}});
}

}  // namespace reprise
