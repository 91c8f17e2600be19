#include "crypto/key_set.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <pwd.h>
#include <simdjson.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/jwe.h"

namespace reprise {

namespace {

using simdjson::dom::element;

// Parses JSON that holds keys. Our usual JSON library leaves copies of them in freed buffers; simdjson keeps all
// strings in one buffer, which can be wiped.
class SecretParser {
 public:
  ~SecretParser() {
    // Beyond its content a string takes five bytes in the buffer and three in the text.
    if (strings_ > 0) WipeBytes(parser_.doc.string_buf.get(), strings_);
  }

  // False if `text` is not JSON or has a duplicate member. `root` is valid as long as the parser is.
  bool Parse(std::string_view text, element& root) {
    SecretText padded;
    padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    Append(padded, text);
    const auto error = parser_.parse(padded.data(), padded.size(), /*realloc_if_needed=*/false).get(root);
    WipeStack();
    if (parser_.doc.string_buf) strings_ = padded.size() * 5 / 3;
    return error == simdjson::SUCCESS && !HasDuplicates(root);
  }

 private:
  static bool HasDuplicates(const element& value) {
    if (value.is_array()) {
      const simdjson::dom::array elements(value);
      return std::ranges::any_of(elements, HasDuplicates);
    }
    if (!value.is_object()) return false;
    std::vector<std::string_view> names;
    for (const auto& [name, member] : simdjson::dom::object(value)) {
      if (HasDuplicates(member)) return true;
      names.push_back(name);
    }
    std::ranges::sort(names);
    return std::ranges::adjacent_find(names) != names.end();
  }

  simdjson::dom::parser parser_;
  std::size_t strings_ = 0;
};

tl::unexpected<Error> InvalidKeys(std::string what) {
  return Fail(Reason::kKeyFileInvalid, "the key file cannot be used: " + std::move(what));
}

// A kid is copied into every sealed file, so it must not need an escape in JSON.
bool IsKid(std::string_view kid) {
  static constexpr std::string_view kOther = "-._~:+/=@";
  return !kid.empty() && kid.size() <= 128 &&
         std::ranges::all_of(kid, [](char c) { return IsAsciiAlnum(c) || kOther.find(c) != std::string_view::npos; });
}

// The text of a member; a view without data if it is not a string.
std::string_view Text(const element& object, std::string_view name) {
  std::string_view text;
  return object[name].get(text) == simdjson::SUCCESS ? text : std::string_view();
}
bool IsThere(const element& object, std::string_view name) { return object[name].error() == simdjson::SUCCESS; }

Result<KeySet::Key> KeyFromJwk(const element& jwk) {
  if (Text(jwk, "kty") != "oct") return InvalidKeys("a key is not of type oct");
  if (IsThere(jwk, "alg") && Text(jwk, "alg") != "A256KW") return InvalidKeys("a key is not for A256KW");
  if (IsThere(jwk, "use") && Text(jwk, "use") != "enc") return InvalidKeys("a key is not for encryption");
  const std::string_view kid = Text(jwk, "kid"), k = Text(jwk, "k");
  if (!IsKid(kid)) return InvalidKeys("a key has no valid kid");
  if (k.data() == nullptr) return InvalidKeys("a key has no k");
  auto bytes = DecodeBase64Url(k);
  if (!bytes) return InvalidKeys("k is not base64url");
  auto secret = SecretKey::FromBytes(*bytes);
  WipeBytes(bytes->data(), bytes->size());
  if (!secret) return InvalidKeys("a key is not 256 bits long");
  return KeySet::Key{.kid = std::string(kid), .secret = *std::move(secret)};
}

KeySet::Key NewKey() { return {.kid = "key_" + RandomHex(12), .secret = SecretKey::Random()}; }
KeySet::Key CopyOf(const KeySet::Key& key) { return {.kid = key.kid, .secret = key.secret.Clone()}; }

}  // namespace

KeySet KeySet::Of(Key key) {
  std::vector<Key> keys;
  keys.push_back(std::move(key));
  return KeySet(std::move(keys));
}

KeySet KeySet::Generate() { return Of(NewKey()); }

Result<KeySet> KeySet::Parse(std::string_view jwk_set) {
  SecretParser parser;
  element root;
  simdjson::dom::array list;
  if (!parser.Parse(jwk_set, root) || root["keys"].get(list) != simdjson::SUCCESS) {
    return InvalidKeys("it is not a JWK Set");
  }
  std::vector<Key> keys;
  keys.reserve(list.size());
  for (const element jwk : list) {
    auto key = KeyFromJwk(jwk);
    if (!key) return Fail(std::move(key.error()));
    const bool twice = std::ranges::any_of(keys, [&](const Key& other) { return other.kid == key->kid; });
    if (twice) return InvalidKeys("two keys have the same kid");
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return InvalidKeys("it holds no key");
  return KeySet(std::move(keys));
}

SecretText KeySet::ToJwkSet() const {
  SecretText text;
  Append(text, R"({"keys":[)");
  for (const Key& key : keys_) {
    if (&key != &current()) Append(text, ",");
    Append(text, R"({"kty":"oct","kid":")" + key.kid + R"(","alg":"A256KW","use":"enc","k":")");
    std::string k = EncodeBase64Url(key.secret.bytes());
    Append(text, k);
    WipeBytes(k.data(), k.size());
    Append(text, "\"}");
  }
  Append(text, "]}\n");
  return text;
}

KeySet KeySet::BoundTo(std::string tenant) const {
  std::vector<Key> keys;
  for (const Key& key : keys_) keys.push_back(CopyOf(key));
  KeySet bound(std::move(keys));
  bound.tenant_ = std::move(tenant);
  return bound;
}

KeySet KeySet::Before(const KeySet& others) const {
  std::vector<Key> keys;
  for (const Key& key : keys_) keys.push_back(CopyOf(key));
  for (const Key& key : others.keys_) keys.push_back(CopyOf(key));
  return KeySet(std::move(keys)).BoundTo(tenant_);
}

KeySet KeySet::WithNewKey() const {
  std::vector<Key> keys;
  keys.push_back(NewKey());
  for (const Key& key : keys_) keys.push_back(CopyOf(key));
  return KeySet(std::move(keys)).BoundTo(tenant_);
}

KeySet KeySet::WithoutOldKeys() const { return Of(CopyOf(current())).BoundTo(tenant_); }

const KeySet::Key* KeySet::Find(std::string_view kid) const {
  const auto key = std::ranges::find(keys_, kid, &Key::kid);
  return key == keys_.end() ? nullptr : &*key;
}

namespace {

constexpr std::uint64_t kMaxKeyFileBytes = 64 * 1024;

Result<void> CheckNotExposed(const std::string& path) {
  struct stat status {};
  // A path unknown to the kernel belongs to a file system without permissions; reading it will tell if it exists.
  if (::stat(path.c_str(), &status) != 0) return {};
  if ((status.st_mode & 077) != 0) {
    return Fail(Reason::kKeyFileExposed, "the key file may be read or written by other users; run chmod 600 on it",
                path);
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return Fail(Reason::kKeyFileForeign, "the key file belongs to another user, who could replace it; run chown on it",
                path);
  }
  return {};
}

// The file's text, wiped on destruction.
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
  if (!source) return Fail(Reason::kPassphraseNeeded, "the key file is protected by a passphrase", path);
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
  // Not if the passphrase could not be obtained, which is not the file's fault.
  const bool of_file =
      !result && (result.error().reason.starts_with("key_file") || result.error().reason.starts_with("passphrase"));
  if (of_file && result.error().detail.empty()) result.error().detail = path;
  return result;
}

// A crash during a change may have left keys in the clear in a temporary file. REQUIRES: no other writer.
void RemoveLeftovers(const std::string& path, FileSystem& file_system) {
  const std::string directory = ParentDirectory(path);
  const std::string prefix = "." + path.substr(path.rfind('/') + 1) + ".";
  const auto entries = file_system.ListDirectory(directory);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.name.starts_with(prefix) || !IsTemporaryName(entry.name)) continue;
    // The next change tries again.
    static_cast<void>(file_system.RemoveFile(directory + "/" + entry.name));
  }
}

Result<void> ReplaceKeyFile(const std::string& path, FileSystem& file_system, std::string_view text) {
  if (text.size() > kMaxKeyFileBytes) return Fail(ErrorCode::kTooLarge, "the key file is full", path);
  RemoveLeftovers(path, file_system);
  return ReplaceFile(file_system, path, text).and_then([&] {
    return file_system.SyncDirectory(ParentDirectory(path));
  });
}

// Resolves symbolic links, so that replacing the file does not replace the link.
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
  if (loaded || !IsNotFound(loaded.error())) return loaded;
  const std::string file = Resolved(path);
  TRY(CreateDirectories(file_system, ParentDirectory(file)));
  const auto lock = TRY(FolderLock::Take(ParentDirectory(file), std::nullopt));
  loaded = LoadKeyFile(path, file_system, passphrase);
  if (loaded || !IsNotFound(loaded.error())) return loaded;
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
    if (::mlock(key.secret.data(), SecretKey::kBytes) != 0) return;  // over RLIMIT_MEMLOCK: serve all the same
  }
}

std::string DefaultKeyFile() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const bool usable = config != nullptr && *config == '/';  // XDG: a relative path counts as not set
  return (usable ? std::string(config) : HomeDirectory() + "/.config") + "/reprise/keys.jwks";
}

namespace {

constexpr std::uint64_t kMaxMemory = 1100ULL << 20;

// libcrypto takes pointers to non-const, but only reads them.
OSSL_PARAM Octets(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}
OSSL_PARAM Number(const char* name, const std::uint64_t& value) {
  return OSSL_PARAM_construct_uint64(name, const_cast<std::uint64_t*>(&value));
}

}  // namespace

Result<SecretKey> ScryptKey(std::string_view passphrase, const ScryptParameters& parameters) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> scrypt(EVP_KDF_fetch(nullptr, "SCRYPT", nullptr),
                                                                 &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(scrypt.get()),
                                                                          &EVP_KDF_CTX_free);
  const OSSL_PARAM params[] = {Octets(OSSL_KDF_PARAM_PASSWORD, passphrase),
                               Octets(OSSL_KDF_PARAM_SALT, parameters.salt),
                               Number(OSSL_KDF_PARAM_SCRYPT_N, parameters.n),
                               Number(OSSL_KDF_PARAM_SCRYPT_R, parameters.r),
                               Number(OSSL_KDF_PARAM_SCRYPT_P, parameters.p),
                               Number(OSSL_KDF_PARAM_SCRYPT_MAXMEM, kMaxMemory),
                               OSSL_PARAM_construct_end()};
  std::array<unsigned char, SecretKey::kBytes> bytes{};
  const bool ok = context && EVP_KDF_derive(context.get(), bytes.data(), bytes.size(), params) == 1;
  auto key = SecretKey::FromBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  WipeBytes(bytes.data(), bytes.size());
  if (ok) return *std::move(key);
  ERR_clear_error();
  return Fail(ErrorCode::kInternal, "no key could be derived from the passphrase (128 MiB of memory are needed)");
}

namespace {

constexpr int kVersion = 1;
constexpr std::string_view kType = "reprise/keys";
constexpr std::string_view kKid = "passphrase";
constexpr std::size_t kSaltBytes = 32;
// An attacker who can write the key file must not make guesses cheap or exhaust the machine's memory.
constexpr std::uint64_t kMinN = 1 << 17, kMaxN = 1 << 20, kR = 8, kMaxP = 4;
constexpr std::size_t kMinSaltBytes = 16, kMaxSaltBytes = 64;

tl::unexpected<Error> InvalidKeyFile(std::string_view what) {
  return Fail(Reason::kKeyFileInvalid, "the key file cannot be used: " + std::string(what));
}

std::uint64_t NumberIn(const Json& header, const char* name) {
  const auto member = header.find(name);
  return member != header.end() && member->is_number_unsigned() ? member->get<std::uint64_t>() : 0;
}
Result<ScryptParameters> ParametersFrom(std::string_view text) {
  const auto header = ReadJweHeader(text);
  if (!header) return InvalidKeyFile(header.error().message);
  if (TextMember(*header, "typ") != kType) return InvalidKeyFile("it is a sealed record of another type");
  if (NumberIn(*header, "ver") != kVersion || TextMember(*header, "kdf") != "scrypt") {
    return InvalidKeyFile("it was written by a version of this program that is not known here");
  }
  auto salt = DecodeBase64Url(TextMember(*header, "salt"));
  ScryptParameters found{.salt = std::move(salt).value_or(""),
                         .n = NumberIn(*header, "n"),
                         .r = NumberIn(*header, "r"),
                         .p = NumberIn(*header, "p")};
  const bool power_of_two = found.n != 0 && (found.n & (found.n - 1)) == 0;
  const bool in_range = found.n >= kMinN && found.n <= kMaxN && found.r == kR && found.p >= 1 && found.p <= kMaxP &&
                        found.salt.size() >= kMinSaltBytes && found.salt.size() <= kMaxSaltBytes;
  if (!power_of_two || !in_range) return InvalidKeyFile("its scrypt parameters are out of range");
  return found;
}

std::string RandomSalt() {
  const SecretKey random = SecretKey::Random();
  static_assert(kSaltBytes == SecretKey::kBytes);
  return std::string(random.bytes());
}

}  // namespace

PassphraseKey::PassphraseKey(SecretKey key, ScryptParameters parameters)
    : key_(KeySet::Of({.kid = std::string(kKid), .secret = std::move(key)})), parameters_(std::move(parameters)) {}

Result<PassphraseKey> PassphraseKey::Derive(std::string_view passphrase) {
  ScryptParameters parameters{.salt = RandomSalt()};
  return ScryptKey(passphrase, parameters).map([&](SecretKey key) {
    return PassphraseKey(std::move(key), std::move(parameters));
  });
}

Result<PassphraseKey> PassphraseKey::Recover(std::string_view text, std::string_view passphrase) {
  auto parameters = TRY(ParametersFrom(text));
  return ScryptKey(passphrase, parameters).map([&](SecretKey key) {
    return PassphraseKey(std::move(key), std::move(parameters));
  });
}

Result<std::string> PassphraseKey::Seal(const KeySet& keys) const {
  const Json header = {
      {"typ", kType},       {"ver", kVersion},    {"cty", "jwk-set+json"}, {"kdf", "scrypt"},
      {"n", parameters_.n}, {"r", parameters_.r}, {"p", parameters_.p},    {"salt", EncodeBase64Url(parameters_.salt)}};
  const SecretText jwk_set = keys.ToJwkSet();
  return SealJwe(header, View(jwk_set), key_).map([](std::string text) { return text + "\n"; });
}

Result<KeySet> PassphraseKey::Open(std::string_view text) const {
  auto opened = OpenJwe(text, key_);
  if (!opened) {
    return Fail(Reason::kPassphraseWrong, "the passphrase does not open the key file");
  }
  auto keys = KeySet::Parse(opened->plaintext);
  WipeBytes(opened->plaintext.data(), opened->plaintext.size());
  return keys;
}

}  // namespace reprise
