#include "app/keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/folders.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"
#include "crypto/secret_key.h"
#include "remote/postgres/database.h"
#include "remote/postgres/database_files.h"
#include "remote/postgres/schema.h"
#include "store/data_folder.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::size_t kMinPassphrase = 8, kMaxPassphrase = 1024;
constexpr int kTries = 3;

tl::unexpected<Error> CannotRead(const std::string& path) {
  return Fail(ErrorCode::kIo, "cannot read the passphrase file " + path + ": " + std::strerror(errno));
}

Result<void> CheckLength(const SecretText& passphrase) {
  if (passphrase.size() <= kMaxPassphrase) return {};
  return Fail(ErrorCode::kInvalidArgument, "the passphrase is longer than 1024 bytes");
}

Result<void> CheckNew(const SecretText& passphrase) {
  if (passphrase.size() < kMinPassphrase) {
    return Fail(ErrorCode::kInvalidArgument, "the new passphrase must have at least 8 characters");
  }
  return CheckLength(passphrase);
}

Result<SecretText> AskTwice() {
  for (int tries_left = kTries;; --tries_left) {
    auto first = AskHidden("New passphrase (8 characters or more): ");
    if (!first) return first;
    auto fits = CheckNew(*first);
    if (fits) {
      const auto second = AskHidden("The same again: ");
      if (!second) return second;
      if (*first == *second) return first;
      fits = Fail(ErrorCode::kInvalidArgument, "the two passphrases differ");
    }
    if (tries_left == 1) return Fail(std::move(fits.error()));
    Warn(fits.error().message);
  }
}

}  // namespace

std::string KeyFileOf(const Options& options) { return options.key_file.empty() ? DefaultKeyFile() : options.key_file; }

std::string ProofKeyFileOf(const Options& options) {
  return (std::filesystem::path(KeyFileOf(options)).parent_path() / "proof.jwks").string();
}

Result<SigningKey> ProofKeyOf(const Options& options) {
  const KeySet keys = TRY(LoadOrCreateKeyFile(ProofKeyFileOf(options), Disk()));
  return SigningKey(keys.current().secret);
}

Result<SecretText> ReadPassphrase(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return CannotRead(path);
  if (S_ISREG(status.st_mode) && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Fail(ErrorCode::kForbidden,
                "the passphrase file " + path + " can be read by other users; run chmod 600 on it");
  }
  SecretText text;
  std::array<char, 256> part;
  while (text.size() <= kMaxPassphrase + 2 && std::ranges::find(text, '\n') == text.end()) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path);
    if (got == 0) break;
    Append(text, {part.data(), static_cast<std::size_t>(got)});
    WipeBytes(part.data(), part.size());
  }
  text.erase(std::ranges::find(text, '\n'), text.end());
  if (!text.empty() && text.back() == '\r') text.pop_back();
  if (text.empty()) return Fail(ErrorCode::kInvalidArgument, "the passphrase file " + path + " is empty");
  TRY(CheckLength(text));
  return text;
}

PassphraseSource PassphraseFrom(const Options& options) {
  if (!options.passphrase_file.empty()) return [path = options.passphrase_file] { return ReadPassphrase(path); };
  return [path = KeyFileOf(options)]() -> Result<SecretText> {
    auto passphrase = AskHidden("Passphrase of " + VisibleLine(path) + ": ");
    if (passphrase || passphrase.error().code != ErrorCode::kUnavailable) return passphrase;
    return Fail(Reason::kPassphraseNeeded,
                "the key file is protected by a passphrase, and there is no terminal to ask for it "
                "(--passphrase-file or REPRISE_PASSPHRASE_FILE)",
                path);
  };
}

Result<SecretText> NewPassphrase(const std::string& file) {
  auto passphrase = file.empty() ? AskTwice() : ReadPassphrase(file);
  if (!passphrase) return passphrase;
  TRY(CheckNew(*passphrase));
  return passphrase;
}

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

namespace {

constexpr int kVersion = 1;
constexpr std::string_view kType = "reprise/org-key";
constexpr std::uint64_t kMostBytes = 64 * 1024;

std::string DigestOf(const std::string& org) { return Sha256Digest({org}); }

std::string FileIn(const std::string& org_folder) { return org_folder + "/.org_key"; }
std::string FileBeside(const std::string& tenant_folder) { return FileIn(ParentDirectory(tenant_folder)); }

tl::unexpected<Error> Damaged(std::string_view kind, const std::string& org, std::string_view what) {
  return Fail(Error{.code = ErrorCode::kCorruption,
                    .reason = "integrity_" + std::string(kind),
                    .message = "the key of this organization " + std::string(what),
                    .detail = "org key of " + org});
}

}  // namespace

tl::unexpected<Error> MissingOrgKey(const std::string& org) {
  return Damaged("missing", org,
                 "is gone, and what its users have is sealed with it: put the key back from a backup, or delete the "
                 "organization with `reprise users org delete`");
}

Result<std::string> NewOrgKey(const KeySet& operators, const std::string& org) {
  const KeySet fresh = KeySet::Generate();
  const SecretText text = fresh.ToJwkSet();
  return SealJwe({{"typ", kType}, {"ver", kVersion}, {"org", DigestOf(org)}}, View(text), operators);
}

Result<std::shared_ptr<const KeySet>> KeysOfTenant(const KeySet& operators, const Principal& tenant,
                                                   std::string_view org_key) {
  auto opened = OpenJwe(org_key, operators);
  if (!opened) return Damaged("auth", tenant.org, "cannot be opened: " + opened.error().message);
  const auto header = ParseJson(opened->protected_header);
  const bool is_key = header && TextMember(*header, "typ") == kType;
  const bool is_own = is_key && TextMember(*header, "org") == DigestOf(tenant.org);
  auto org = is_own ? KeySet::Parse(opened->plaintext) : Fail(ErrorCode::kCorruption, "");
  WipeBytes(opened->plaintext.data(), opened->plaintext.size());
  if (!is_own) return Damaged("swap", tenant.org, "is another's");
  if (!org) return Damaged("auth", tenant.org, "is none");
  auto keys = std::make_shared<const KeySet>(org->Before(operators).BoundTo(TenantOf(tenant)));
  KeepInMemory(*keys);
  return keys;
}

Result<std::string> OrgKeyOf(const std::string& tenant_folder, const std::string& org, const KeySet& operators,
                             FileSystem& disk) {
  const std::string path = FileBeside(tenant_folder);
  auto kept = disk.ReadFile(path, kMostBytes);
  if (kept || kept.error().code != ErrorCode::kNotFound) return kept;
  // A new key would open none of the present records, and hide that the right one is gone.
  for (const std::string& folder : FoldersIn(ParentDirectory(tenant_folder), disk)) {
    const auto sealed = TRY(ReadFolderKeys(folder, FolderMode::kSealed, &operators, disk));
    if (!sealed.missing.empty()) return MissingOrgKey(org);
  }
  auto made = TRY(NewOrgKey(operators, org));
  TRY(ReplaceFile(disk, path, made));
  TRY(disk.SyncDirectory(ParentDirectory(path)));
  return made;
}

Result<void> RemoveOrgKey(const std::string& org_folder, FileSystem& disk) {
  auto removed = disk.RemoveFile(FileIn(org_folder));
  if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
  return disk.SyncDirectory(org_folder);
}

Result<std::shared_ptr<const KeySet>> KeysOfFolder(KeySet operators, const std::string& folder, FileSystem& disk) {
  const auto owner = OwnerOfFolder(folder, disk);
  if (!owner) return std::make_shared<const KeySet>(std::move(operators));
  const auto kept = disk.ReadFile(FileBeside(folder), kMostBytes);
  if (kept) return KeysOfTenant(operators, *owner, *kept);
  if (kept.error().code != ErrorCode::kNotFound) return Fail(kept.error());
  return std::make_shared<const KeySet>(operators.BoundTo(TenantOf(*owner)));
}

}  // namespace reprise
