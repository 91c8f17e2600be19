// The functions of one algorithm: before the first use of EVP, OpenSSL reads its configuration and lists all that it
// has, which a server would do at its start for the sake of a few digests.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "crypto/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <vector>

#include "base/system.h"
#include "base/text.h"

namespace reprise {

namespace {

constexpr std::size_t kReadSize = 256 * 1024;

class Sha256 {
 public:
  Sha256() { ::SHA256_Init(&context_); }
  void Add(const char* data, std::size_t size) { ::SHA256_Update(&context_, data, size); }

  std::string TextSoFar() const {
    Sha256 copy = *this;
    return copy.Text();
  }

  std::string Text() { return "sha256:" + EncodeHex(Bytes()); }

  std::array<unsigned char, 32> Bytes() {
    std::array<unsigned char, 32> digest{};
    ::SHA256_Final(digest.data(), &context_);
    return digest;
  }

 private:
  SHA256_CTX context_;
};

}  // namespace

class Sha256Sum::Context : public Sha256 {};

Sha256Sum::Sha256Sum() : context_(std::make_unique<Context>()) {}
Sha256Sum::~Sha256Sum() = default;
Sha256Sum::Sha256Sum(Sha256Sum&&) noexcept = default;
Sha256Sum& Sha256Sum::operator=(Sha256Sum&&) noexcept = default;
void Sha256Sum::Add(std::string_view piece) { context_->Add(piece.data(), piece.size()); }
std::string Sha256Sum::Text() const { return context_->TextSoFar(); }

std::string Sha256Digest(std::span<const std::string_view> parts) {
  Sha256 digest;
  for (const std::string_view part : parts) digest.Add(part.data(), part.size());
  return digest.Text();
}

std::string Sha256Bytes(std::initializer_list<std::string_view> parts) {
  Sha256 digest;
  for (const std::string_view part : parts) digest.Add(part.data(), part.size());
  const auto bytes = digest.Bytes();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::string> Sha256OfPrefixes(std::string_view text, const std::vector<std::size_t>& sizes) {
  Sha256 digest;
  std::vector<std::string> digests;
  std::size_t done = 0;
  for (const std::size_t size : sizes) {
    digest.Add(text.data() + done, size - done);
    done = size;
    digests.push_back(digest.TextSoFar());
  }
  return digests;
}

Result<std::string> Sha256OfFile(const std::string& path) {
  const auto failed = [&](int error) {
    const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Fail(code, "cannot read " + path + ": " + std::generic_category().message(error));
  };
  // O_NONBLOCK: a fifo must be refused, not waited for.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return failed(errno);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalidArgument, path + " is not a regular file");
  Sha256 digest;
  std::vector<char> buffer(kReadSize);
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got == 0) return digest.Text();
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    digest.Add(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::string HmacSha256(const SecretKey& key, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text.append(part);
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), key.data(), SecretKey::kBytes, data, text.size(), mac.data(), &size) == nullptr) {
    std::abort();  // only without memory, or with a libcrypto that has no SHA-256
  }
  return "hmac-sha256:" + EncodeHex({mac.data(), size});
}

}  // namespace reprise
