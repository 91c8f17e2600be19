#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/system.h"
#include "crypto/secret_key.h"
#include "reprise/result.h"

namespace reprise {

// What the files of the workspace hold, for as long as the process lives: in one file without a name, sealed under a
// key that nobody keeps. Not thread-safe.
class ContentCache {
 public:
  // Where a content lies.
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t size = 0;  // as sealed
    bool operator==(const Place&) const = default;
  };

  // The file is made in `folder` by the first Add. Beyond `max_bytes` nothing more is taken.
  ContentCache(std::string folder, std::uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  // kTooLarge (there is no more room), kStorageFull, kIo.
  Result<Place> Add(std::string_view content);
  Result<std::string> Read(const Place& place);
  void Forget(const Place& place);
  // To be told once that there is no more room.
  bool full() const { return full_; }

 private:
  Result<void> Open();
  Result<void> Flush();

  const std::string folder_;
  const std::uint64_t max_bytes_;
  const SecretKey key_ = SecretKey::Random();
  UniqueFd file_;
  std::string pending_;     // what is to be written next, at `end_`
  std::uint64_t end_ = 0;   // of what is written
  std::uint64_t held_ = 0;  // bytes that are in use
  std::uint64_t next_iv_ = 0;
  bool full_ = false;
};

}  // namespace reprise
