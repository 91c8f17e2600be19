#include "crypto/key_file.h"

#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/try.h"
#include "crypto/jwe.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxKeyFileBytes = 64 * 1024;

tl::unexpected<Error> Forbidden(std::string reason, std::string message, const std::string& path) {
  return Fail(Refused(ErrorCode::kForbidden, std::move(reason), std::move(message), path));
}

Result<void> CheckNotExposed(const std::string& path) {
  struct stat status {};
  // A path that the kernel does not know belongs to a file system without permissions; reading it says if it exists.
  if (::stat(path.c_str(), &status) != 0) return {};
  if ((status.st_mode & 077) != 0) {
    return Forbidden("key_file_exposed", "the key file may be read or written by other users; run chmod 600 on it",
                     path);
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return Forbidden("key_file_foreign", "the key file belongs to another user, who could replace it; run chown on it",
                     path);
  }
  return {};
}

// The file's text, wiped in the end.
class FileText {
 public:
  explicit FileText(std::string text) : text_(std::move(text)) {}
  FileText(FileText&&) noexcept = default;
  FileText& operator=(FileText&&) = delete;
  ~FileText() { WipeBytes(text_.data(), text_.size()); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct Opened {
  KeySet keys;
  std::optional<PassphraseKey> passphrase_key;
};

Result<Opened> OpenProtected(const std::string& path, const std::string& text, const PassphraseSource& source) {
  if (!source) return Forbidden("passphrase_needed", "the key file is protected by a passphrase", path);
  const auto passphrase = TRY(source());
  auto key = PassphraseKey::Recover(text, View(passphrase));
  if (!key) return Fail(std::move(key.error()));
  auto keys = TRY(key->Open(text));
  return Opened{.keys = std::move(keys), .passphrase_key = *std::move(key)};
}

Result<Opened> Read(const std::string& path, FileSystem& file_system, const PassphraseSource& source) {
  TRY(CheckNotExposed(path));
  auto content = TRY(file_system.ReadFile(path, kMaxKeyFileBytes));
  const FileText file(std::move(content));
  const auto opened = [&]() -> Result<Opened> {
    if (LooksLikeJwe(file.text())) return OpenProtected(path, file.text(), source);
    auto keys = TRY(KeySet::Parse(file.text()));
    return Opened{.keys = std::move(keys), .passphrase_key = std::nullopt};
  };
  auto result = opened();
  // Not of a passphrase that could not be got: that is no fault of this file.
  const bool of_file =
      !result && (result.error().reason.starts_with("key_file") || result.error().reason.starts_with("passphrase"));
  if (of_file && result.error().detail.empty()) result.error().detail = path;
  return result;
}

// A crash in the middle of a change may have left keys in the clear in a temporary file. REQUIRES: nobody else writes.
void RemoveLeftovers(const std::string& path, FileSystem& file_system) {
  const std::string directory = ParentDirectory(path);
  const std::string prefix = "." + path.substr(path.rfind('/') + 1) + ".";
  const auto entries = file_system.ListDirectory(directory);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.name.starts_with(prefix) || !IsTemporaryName(entry.name)) continue;
    // Tried again at the next change.
    static_cast<void>(file_system.RemoveFile(directory + "/" + entry.name));
  }
}

Result<void> ReplaceKeyFile(const std::string& path, FileSystem& file_system, std::string_view text) {
  if (text.size() > kMaxKeyFileBytes) return Fail(ErrorCode::kTooLarge, "the key file cannot take any more keys", path);
  RemoveLeftovers(path, file_system);
  return ReplaceFile(file_system, path, text).and_then([&] {
    return file_system.SyncDirectory(ParentDirectory(path));
  });
}

// The file itself, for one that is reached over a symbolic link: the link must stay one.
std::string Resolved(const std::string& path) {
  std::error_code failed;
  const auto resolved = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : resolved.string();
}

std::string HomeDirectory() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return home;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr ? user->pw_dir : "/";
}

}  // namespace

KeyFile::KeyFile(std::string path, FileSystem& file_system, FolderLock lock, KeySet keys,
                 std::optional<PassphraseKey> passphrase_key)
    : path_(std::move(path)),
      file_system_(&file_system),
      lock_(std::move(lock)),
      keys_(std::move(keys)),
      passphrase_key_(std::move(passphrase_key)) {}

Result<KeyFile> KeyFile::Open(const std::string& path, FileSystem& file_system, const PassphraseSource& passphrase) {
  std::string file = Resolved(path);
  auto lock = TRY(FolderLock::Take(ParentDirectory(file), std::nullopt));
  auto opened = TRY(Read(file, file_system, passphrase));
  return KeyFile(std::move(file), file_system, std::move(lock), std::move(opened.keys),
                 std::move(opened.passphrase_key));
}

Result<void> KeyFile::Write(const KeySet& keys, const PassphraseKey* sealed_by) const {
  if (sealed_by == nullptr) return ReplaceKeyFile(path_, *file_system_, View(keys.ToJwkSet()));
  return sealed_by->Seal(keys).and_then(
      [&](const std::string& text) { return ReplaceKeyFile(path_, *file_system_, text); });
}

Result<void> KeyFile::ChangeKeys(KeySet keys) {
  auto written = Write(keys, passphrase_key_ ? &*passphrase_key_ : nullptr);
  if (written) keys_ = std::move(keys);
  return written;
}

Result<void> KeyFile::AddKey() { return ChangeKeys(keys_.WithNewKey()); }
Result<void> KeyFile::RemoveOldKeys() { return ChangeKeys(keys_.WithoutOldKeys()); }

Result<void> KeyFile::SetPassphrase(const SecretText& passphrase) {
  auto key = PassphraseKey::Derive(View(passphrase));
  if (!key) return Fail(std::move(key.error()));
  auto written = Write(keys_, &*key);
  if (written) passphrase_key_ = *std::move(key);
  return written;
}

Result<void> KeyFile::RemovePassphrase() {
  auto written = Write(keys_, nullptr);
  if (written) passphrase_key_.reset();
  return written;
}

Result<KeySet> LoadKeyFile(const std::string& path, FileSystem& file_system, const PassphraseSource& passphrase) {
  return Read(path, file_system, passphrase).map([](Opened opened) { return std::move(opened.keys); });
}

Result<KeySet> LoadOrCreateKeyFile(const std::string& path, FileSystem& file_system,
                                   const PassphraseSource& passphrase) {
  auto loaded = LoadKeyFile(path, file_system, passphrase);
  if (loaded || loaded.error().code != ErrorCode::kNotFound) return loaded;
  const std::string file = Resolved(path);
  TRY(CreateDirectories(file_system, ParentDirectory(file)));
  const auto lock = TRY(FolderLock::Take(ParentDirectory(file), std::nullopt));
  loaded = LoadKeyFile(path, file_system, passphrase);
  if (loaded || loaded.error().code != ErrorCode::kNotFound) return loaded;
  KeySet keys = KeySet::Generate();
  TRY(ReplaceKeyFile(file, file_system, View(keys.ToJwkSet())));
  return keys;
}

bool OthersMayReplace(const std::string& path) {
  struct stat status {};
  if (::stat(ParentDirectory(Resolved(path)).c_str(), &status) != 0) return false;
  const bool foreign = status.st_uid != ::geteuid() && status.st_uid != 0;
  return foreign || ((status.st_mode & 022) != 0 && (status.st_mode & S_ISVTX) == 0);
}

void KeepInMemory(const KeySet& keys) {
  for (const KeySet::Key& key : keys.keys()) {
    if (::mlock(key.secret.data(), SecretKey::kBytes) != 0) return;  // RLIMIT_MEMLOCK: no reason not to serve
  }
}

std::string DefaultKeyFile() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const bool usable = config != nullptr && *config == '/';  // the XDG rule: a relative path counts as not set
  return (usable ? std::string(config) : HomeDirectory() + "/.config") + "/reprise/keys.jwks";
}

}  // namespace reprise
