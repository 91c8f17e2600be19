#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// A digest of text that comes in pieces.
class Sha256Sum {
 public:
  Sha256Sum();
  ~Sha256Sum();
  Sha256Sum(Sha256Sum&&) noexcept;
  Sha256Sum& operator=(Sha256Sum&&) noexcept;
  void Add(std::string_view piece);
  // As Sha256Digest writes it, of the pieces so far.
  std::string Text() const;

 private:
  class Context;
  std::unique_ptr<Context> context_;
};

// "sha256:" and the hex digest of the concatenated parts.
std::string Sha256Digest(std::span<const std::string_view> parts);
inline std::string Sha256Digest(std::initializer_list<std::string_view> parts) {
  return Sha256Digest(std::span(parts.begin(), parts.size()));
}

// The 32 bytes of that digest.
std::string Sha256Bytes(std::initializer_list<std::string_view> parts);

// The digests, as Sha256Digest writes them, of the first so many bytes of `text`, in one pass, for each of `sizes`.
// REQUIRES: they are ascending, and none is above text.size().
std::vector<std::string> Sha256OfPrefixes(std::string_view text, const std::vector<std::size_t>& sizes);

// The same for a regular file of any size. kNotFound, kInvalidArgument (not a regular file), kIo; the message names the
// file for the person at the terminal.
Result<std::string> Sha256OfFile(const std::string& path);

// "hmac-sha256:" and the hex MAC of the concatenated parts under the key.
std::string HmacSha256(const SecretKey& key, std::initializer_list<std::string_view> parts);

}  // namespace reprise
