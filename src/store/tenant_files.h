#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "reprise/daily_usage.h"
#include "reprise/file_system.h"
#include "reprise/grant_store.h"
#include "reprise/result.h"

namespace reprise {

// The standing grants, in one file of the data folder (schemas/FILES.md), sealed if there are keys.

// Empty if there was never a file. kCorruption (reason "integrity_<kind>") if it is not the version that WriteGrantFile
// wrote last, as far as .grants_head shows.
Result<std::vector<StandingGrant>> ReadGrantFile(FileSystem& file_system, const std::string& root, const KeySet* keys);
// Replaces the file, durably. kTooLarge beyond kMaxStandingGrants.
Result<void> WriteGrantFile(FileSystem& file_system, const std::string& root, const KeySet* keys,
                            const std::vector<StandingGrant>& grants);

// A grant as JSON text, and back. kCorruption.
std::string StandingGrantText(const StandingGrant& grant);
Result<StandingGrant> ParseStandingGrant(std::string_view text);

// Gives a grant the expiry and meaning of an equal one. False if it had them already.
bool Renew(StandingGrant& there, const StandingGrant& added);

inline constexpr std::size_t kMaxStandingGrants = 10'000;

// REQUIRES: no other process uses the folder.
class FileGrantStore final : public GrantStore {
 public:
  // `keys` may be null: plain. `file_system` must outlive the object. The file is read at the first call.
  FileGrantStore(FileSystem& file_system, std::string root, std::shared_ptr<const KeySet> keys)
      : file_system_(file_system), root_(std::move(root)), keys_(std::move(keys)) {}
  ~FileGrantStore() override;  // writes the counted uses

  Result<bool> Add(const StandingGrant& grant) override;
  Result<void> Remove(std::string_view id) override;
  Result<std::vector<StandingGrant>> List() override;
  std::vector<Grant> For(const Grant& call) override;
  void NoteUse(const std::vector<std::string>& ids) override;

 private:
  Result<void> ReadOnce() REQUIRES(mutex_);
  Result<void> Write(std::vector<StandingGrant> grants) REQUIRES(mutex_);
  void WriteCounts() REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string root_;
  const std::shared_ptr<const KeySet> keys_;
  Mutex mutex_;
  std::optional<std::vector<StandingGrant>> grants_ GUARDED_BY(mutex_);  // nullopt: to be read, if that is possible
  std::uint64_t uncounted_ GUARDED_BY(mutex_) = 0;                       // uses that are not in the file yet
  std::chrono::steady_clock::time_point counted_at_ GUARDED_BY(mutex_) = std::chrono::steady_clock::now();
  bool told_ GUARDED_BY(mutex_) = false;  // a failure to read was logged
};

// Keeps the day and its tokens in a file of the data folder (schemas/FILES.md).
class DailyUsageFile final : public DailyUsage {
 public:
  // `file_system` must outlive the object. An unreadable file counts as no use.
  DailyUsageFile(FileSystem& file_system, std::string path);

  std::int64_t Today() override;
  Result<void> Add(std::int64_t tokens) override;

 private:
  void BeginDay() REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  Mutex mutex_;
  std::chrono::sys_days day_ GUARDED_BY(mutex_);
  std::int64_t tokens_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
