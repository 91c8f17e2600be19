#include "crypto/key_set.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/random.h"
#include "crypto/base64url.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxKeyFileBytes = 64 * 1024;

void Wipe(std::string& text) { WipeBytes(text.data(), text.size()); }

Error KeyFileError(ErrorCode code, std::string reason, std::string message, const std::string& path = {}) {
  return Error{.code = code, .reason = std::move(reason), .message = std::move(message), .detail = path};
}
tl::unexpected<Error> Invalid(std::string what) {
  return Fail(KeyFileError(ErrorCode::kCorruption, "key_file_invalid", "the key file cannot be used: " + what));
}

// A kid stands in every sealed file as it is, so it holds nothing that JSON would escape.
bool IsKid(std::string_view kid) {
  static constexpr std::string_view kOther = "-._~:+/=@";
  return !kid.empty() && kid.size() <= 128 && std::all_of(kid.begin(), kid.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOther.find(c) != std::string_view::npos;
  });
}

bool HasText(const Json& object, const char* name, std::string_view expected) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() && member->get_ref<const std::string&>() == expected;
}

Result<KeySet::Key> KeyFromJwk(Json& jwk) {
  if (!jwk.is_object() || !HasText(jwk, "kty", "oct")) return Invalid("a key is not of type oct");
  if (jwk.contains("alg") && !HasText(jwk, "alg", "A256KW")) return Invalid("a key is not for A256KW");
  if (jwk.contains("use") && !HasText(jwk, "use", "enc")) return Invalid("a key is not for encryption");
  const auto kid = jwk.find("kid");
  if (kid == jwk.end() || !kid->is_string() || !IsKid(kid->get_ref<const std::string&>())) {
    return Invalid("a key has no usable kid");
  }
  const auto k = jwk.find("k");
  if (k == jwk.end() || !k->is_string()) return Invalid("a key has no k");
  auto bytes = DecodeBase64Url(k->get_ref<const std::string&>());
  Wipe(k->get_ref<std::string&>());
  if (!bytes) return Invalid("k is not base64url");
  auto secret = SecretKey::FromBytes(*bytes);
  Wipe(*bytes);
  if (!secret) return Invalid("a key does not have 256 bits");
  return KeySet::Key{.kid = kid->get<std::string>(), .secret = *std::move(secret)};
}

// Written by hand: every copy of the key that a JSON library makes would stay in memory.
std::string JwkSetText(const KeySet& keys) {
  std::string text = R"({"keys":[)";
  text.reserve(256 * keys.keys().size() + 16);  // no reallocation that leaves key bytes behind
  for (const KeySet::Key& key : keys.keys()) {
    if (&key != &keys.current()) text += ',';
    text += R"({"kty":"oct","kid":")" + key.kid + R"(","alg":"A256KW","use":"enc","k":")";
    AppendBase64Url(text, key.secret.bytes());
    text += "\"}";
  }
  text += "]}\n";
  return text;
}

Result<void> CheckNotExposed(const std::string& path) {
  struct stat status {};
  // A path that the kernel does not know belongs to a file system without permissions; reading it says if it exists.
  if (::stat(path.c_str(), &status) != 0) return {};
  if ((status.st_mode & 077) != 0) {
    return Fail(KeyFileError(ErrorCode::kForbidden, "key_file_exposed",
                             "the key file may be read or written by other users; run chmod 600 on it", path));
  }
  return {};
}

// Holds an advisory lock on a directory, so that two first starts do not both create a key: the second would replace
// the first one's, and with it the only key of what was sealed in between.
class DirectoryGuard {
 public:
  explicit DirectoryGuard(const std::string& directory)
      : fd_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~DirectoryGuard() {
    if (fd_ >= 0) ::close(fd_);
  }
  DirectoryGuard(const DirectoryGuard&) = delete;
  DirectoryGuard& operator=(const DirectoryGuard&) = delete;

 private:
  const int fd_;
};

std::string HomeDirectory() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return home;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr ? user->pw_dir : "/";
}

}  // namespace

KeySet KeySet::Generate() {
  std::vector<Key> keys;
  keys.push_back({.kid = "key_" + RandomHex(12), .secret = SecretKey::Random()});
  return KeySet(std::move(keys));
}

Result<KeySet> KeySet::Parse(std::string_view jwk_set) {
  auto json = ParseJson(jwk_set);
  if (!json) return Invalid(json.error().message);
  const auto list = json->is_object() ? json->find("keys") : json->end();
  if (!json->is_object() || list == json->end() || !list->is_array()) return Invalid("it is not a JWK Set");
  std::vector<Key> keys;
  keys.reserve(list->size());
  for (Json& jwk : *list) {
    auto key = KeyFromJwk(jwk);
    if (!key) return Fail(std::move(key.error()));
    const bool twice = std::any_of(keys.begin(), keys.end(), [&](const Key& other) { return other.kid == key->kid; });
    if (twice) return Invalid("two keys have the same kid");
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return Invalid("it holds no key");
  return KeySet(std::move(keys));
}

Result<KeySet> KeySet::Load(const std::string& path, FileSystem& file_system) {
  if (auto private_file = CheckNotExposed(path); !private_file) return Fail(std::move(private_file.error()));
  auto text = file_system.ReadFile(path, kMaxKeyFileBytes);
  if (!text) return Fail(std::move(text.error()));
  auto keys = Parse(*text);
  Wipe(*text);
  if (!keys) keys.error().detail = path;
  return keys;
}

Result<KeySet> KeySet::LoadOrCreate(const std::string& path, FileSystem& file_system) {
  auto loaded = Load(path, file_system);
  if (loaded || loaded.error().code != ErrorCode::kNotFound) return loaded;
  const std::string directory = ParentDirectory(path);
  if (auto made = CreateDirectories(file_system, directory); !made) return Fail(std::move(made.error()));
  const DirectoryGuard guard(directory);
  loaded = Load(path, file_system);
  if (loaded || loaded.error().code != ErrorCode::kNotFound) return loaded;

  KeySet keys = Generate();
  std::string text = JwkSetText(keys);
  auto written = ReplaceFile(file_system, path, text).and_then([&] { return file_system.SyncDirectory(directory); });
  Wipe(text);
  if (!written) return Fail(std::move(written.error()));
  return keys;
}

const KeySet::Key* KeySet::Find(std::string_view kid) const {
  const auto key = std::find_if(keys_.begin(), keys_.end(), [&](const Key& candidate) { return candidate.kid == kid; });
  return key == keys_.end() ? nullptr : &*key;
}

std::string DefaultKeyFile() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const bool usable = config != nullptr && *config == '/';  // the XDG rule: a relative path counts as not set
  return (usable ? std::string(config) : HomeDirectory() + "/.config") + "/reprise/keys.jwks";
}

}  // namespace reprise
