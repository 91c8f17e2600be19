#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
#include "reprise/result.h"
#include "store/record.h"

namespace reprise {

// The lines of one journal file (schemas/FILES.md). The first, the header, is a JWE that holds a key made for this file
// and is bound to chat and interaction like a checkpoint; each record is one AES-256-GCM message under that key whose
// IV is its position, so that none can be changed, moved, left out or brought in from elsewhere. Without keys the
// header and the records are plain JSON. Immutable, thread-safe.
class JournalCipher {
 public:
  // A new file's. `keys` may be null: plain.
  static Result<JournalCipher> Create(const RecordPlace& place, const KeySet* keys);
  // That of a file with this first line. kCorruption unless it was made for exactly this place.
  static Result<JournalCipher> FromHeader(const RecordPlace& place, std::string_view header, const KeySet* keys);

  const std::string& header() const { return header_; }
  // A position may be used once only. Lines are without their newline.
  Result<std::string> Seal(std::uint64_t position, std::string_view record) const;
  Result<std::string> Open(std::uint64_t position, std::string_view line) const;

 private:
  JournalCipher(std::string header, std::optional<SecretKey> key) : header_(std::move(header)), key_(std::move(key)) {}

  std::string header_;
  std::optional<SecretKey> key_;  // nullopt: plain
};

}  // namespace reprise
