#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/key_set.h"
#include "reprise/result.h"
#include "store/record.h"

namespace reprise {

// The form of one journal file (schemas/FILES.md). Its first line, the header, is a JWE that holds a key made for this
// file and is bound to chat and interaction like a checkpoint; each record is one AES-256-GCM message under that key
// whose IV is its position, so that none can be changed, moved, left out or brought in from elsewhere. Without keys the
// header and the records are as they are, each record with a checksum behind it. Immutable, thread-safe.
class JournalCipher {
 public:
  static constexpr std::size_t kOverhead = 16;  // how many bytes longer a sealed record is

  // A new file's. `keys` may be null: plain.
  static Result<JournalCipher> Create(const RecordPlace& place, const KeySet* keys);
  // That of a file with this first line. kCorruption unless it was made for exactly this place.
  static Result<JournalCipher> FromHeader(const RecordPlace& place, std::string_view header, const KeySet* keys);

  // What a file with this first line says of itself, whoever wrote it; nullopt if it is no journal.
  static std::optional<RecordPlace> ClaimedPlace(std::string_view header);

  const std::string& header() const { return header_; }
  // Appends the sealed record to `out`. A position may be used once only. `associated` must be the same at Open.
  Result<void> Seal(std::string& out, std::uint64_t position, std::string_view associated,
                    std::string_view record) const;
  Result<std::string> Open(std::uint64_t position, std::string_view associated, std::string_view sealed) const;

 private:
  JournalCipher(std::string header, std::optional<SecretKey> key) : header_(std::move(header)), key_(std::move(key)) {}

  std::string header_;
  std::optional<SecretKey> key_;  // nullopt: plain
};

}  // namespace reprise
