// What is left of a key in this process's memory. Not under sanitizers, whose memory is of a size that nobody reads
// through and which keep what is freed.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "base/json.h"
#include "base/posix_file_system.h"
#include "crypto/jwe.h"
#include "crypto/key_set.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise::secret_memory_test {
namespace {

// The bytes of a key, the characters of its base64url and of a passphrase. Each is computed when it is needed, so that
// the test itself holds none of them anywhere.
volatile unsigned seed = 7;
[[gnu::noinline]] unsigned char KeyByte(std::size_t i) {
  return static_cast<unsigned char>((i * 89 + 31) ^ (i * i * seed));
}
[[gnu::noinline]] unsigned char KeyCharacter(std::size_t i) {
  static const char* const kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const std::size_t bit = i * 6, byte = bit / 8;
  const unsigned next = byte + 1 < 32 ? KeyByte(byte + 1) : 0;
  return static_cast<unsigned char>(kAlphabet[(((KeyByte(byte) << 8) | next) >> (10 - bit % 8)) & 63]);
}
[[gnu::noinline]] unsigned char PassphraseCharacter(std::size_t i) {
  return static_cast<unsigned char>('!' + (i * 31 + 5 * seed) % 90);
}

using Pattern = unsigned char (*)(std::size_t);
constexpr std::size_t kWindow = 20;  // shorter pieces turn up in vector registers that were saved on the stack

std::size_t CountIn(const unsigned char* begin, const unsigned char* end, Pattern pattern) {
  std::size_t found = 0;
  const unsigned char first = pattern(0), second = pattern(1);
  for (const unsigned char* at = begin; at + kWindow <= end; ++at) {
    if (*at != first || at[1] != second) continue;
    std::size_t same = 2;
    while (same < kWindow && at[same] == pattern(same)) ++same;
    found += same == kWindow ? 1 : 0;
  }
  return found;
}

// How often the first kWindow bytes of the pattern stand in memory that can be written.
std::size_t CountInMemory(Pattern pattern) {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string access;
    std::istringstream words(line);
    words >> std::hex >> begin >> dash >> end >> access;
    if (!access.starts_with("rw")) continue;
    found +=
        CountIn(reinterpret_cast<const unsigned char*>(begin), reinterpret_cast<const unsigned char*>(end), pattern);
  }
  return found;
}

void WriteKeyFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  const auto write = [fd](const std::string& text) {
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  write(R"({"keys":[{"kty":"oct","kid":"key_a","alg":"A256KW","use":"enc","k":")");
  for (std::size_t i = 0; i < 43; ++i) write(std::string(1, static_cast<char>(KeyCharacter(i))));
  write("\"}]}\n");
  ::close(fd);
}

Result<SecretText> Passphrase() {
  SecretText text;
  for (std::size_t i = 0; i < 24; ++i) text.push_back(static_cast<char>(PassphraseCharacter(i)));
  return text;
}

// Every way that a key takes through this program.
void UseKeys(const std::string& path) {
  PosixFileSystem disk;
  std::optional<KeySet> keys = *LoadKeyFile(path, disk);
  // Without this the zeros below would prove nothing.
  CHECK(CountInMemory(KeyByte) == 1);
  CHECK(CountInMemory(KeyCharacter) == 0);
  const auto sealed = SealJwe(*ParseJson("{}"), "content", *keys);
  REQUIRE(OpenJwe(*sealed, *keys));
  {
    auto file = KeyFile::Open(path, disk);
    REQUIRE(file->AddKey());
    REQUIRE(RewrapJwe(*sealed, file->keys()));
    {
      const auto passphrase = Passphrase();
      CHECK(CountInMemory(PassphraseCharacter) == 1);
      REQUIRE(file->SetPassphrase(*passphrase));
    }
    REQUIRE(file->RemovePassphrase());
    REQUIRE(file->SetPassphrase(*Passphrase()));
  }
  keys = *LoadKeyFile(path, disk, Passphrase);
  REQUIRE(keys->Find("key_a") != nullptr);
  CHECK(CountInMemory(KeyByte) == 1);
}

}  // namespace

TEST_CASE("keys and passphrases leave nothing behind in memory", "[crypto]") {
  const TempDirectory folder;
  WriteKeyFile(folder.File("keys.jwks"));
  UseKeys(folder.File("keys.jwks"));
  CHECK(CountInMemory(KeyByte) == 0);
  CHECK(CountInMemory(KeyCharacter) == 0);
  CHECK(CountInMemory(PassphraseCharacter) == 0);
}

}  // namespace reprise::secret_memory_test

#endif
