#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/system.h"
#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// Contents of workspace files during the life of the process, in one nameless file sealed under a key that is never
// stored. Not thread-safe.
class ContentCache {
 public:
  // The place of a content in the file.
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t size = 0;  // size when sealed
    bool operator==(const Place&) const = default;
  };

  // The first Add creates the file in `folder`. The cache holds at most `max_bytes`.
  ContentCache(std::string folder, std::uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // kTooLarge (the cache is full), kStorageFull, kIo.
  Result<Place> Add(std::string_view content);
  Result<std::string> Read(const Place& place);
  void Forget(const Place& place);
  // Whether an Add found the cache full; the caller reports it once.
  bool full() const { return full_; }

 private:
  Result<void> Open();
  Result<void> Flush();

  const std::string folder_;
  const std::uint64_t max_bytes_;
  const SecretKey key_ = SecretKey::Random();
  UniqueFd file_;
  std::string pending_;     // to be written next, at `end_`
  std::uint64_t end_ = 0;   // of the written part
  std::uint64_t held_ = 0;  // bytes in use
  std::uint64_t next_iv_ = 0;
  bool full_ = false;
};

}  // namespace reprise
