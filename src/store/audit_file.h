#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/system.h"
#include "crypto/key_set.h"
#include "reprise/audit_log.h"
#include "reprise/file_system.h"
#include "store/verify.h"

namespace reprise {

// What .audit_head holds: how far the log had come.
struct AuditHead {
  std::uint64_t count = 0;       // lines
  std::string last;              // digest of the last of them; empty: there is none
  std::uint64_t keyed_from = 1;  // the number of the first line that has a MAC
  std::uint64_t unproven = 0;    // lines up to this number were there when a head was lost
  std::optional<SecretKey> key;  // of the MACs; nullopt: a plain folder
};

// nullopt: there is none yet. kCorruption, kIo.
Result<std::optional<AuditHead>> ReadAuditHead(const std::string& root, FileSystem& file_system, const KeySet* keys);
// What .audit_head holds then: sealed if there are keys.
Result<std::string> AuditHeadText(const AuditHead& head, const KeySet* keys);
// Replaces the file, durably.
Result<void> WriteAuditHead(const std::string& root, FileSystem& file_system, const KeySet* keys,
                            const AuditHead& head);
// Ok if the log ends where the head says or continues it. `last_digest` is the digest of the last line, number `last`.
// kCorruption.
Result<void> CheckAuditEnd(const AuditHead& head, std::uint64_t last, const std::string& last_digest);
// A line of the log, without its end; `previous`: the digest of the line before it, empty if there is none. `key` may
// be null: no MAC.
std::string AuditLine(const AuditEntry& entry, std::uint64_t number, const std::string& previous, const SecretKey* key);

// AuditLog::Read over the lines that `read` returns, checked. `head`: as it was before the page was read. `sealed`: the
// log has MACs.
Result<AuditLog::Page> ReadAuditPage(
    Result<std::optional<AuditHead>> head, std::uint64_t after, std::size_t limit, bool sealed,
    const std::function<Result<AuditLog::Page>(std::uint64_t after, std::size_t limit)>& read);

// The audit log as files of a data folder (schemas/FILES.md): audit.jsonl, and audit.NNN.jsonl for what was written
// before that grew too large. Each line has a number, the digest of the line before it and, where there are keys, a
// MAC. How far the log has come is in .audit_head: written a while after a line was added, and when the object goes.
class AuditFile final : public AuditLog {
 public:
  struct Settings {
    std::uint64_t max_bytes = 8 * 1024 * 1024;  // of one file
    std::chrono::milliseconds seal_after = std::chrono::seconds(30);
  };
  // Touches nothing before the first entry. Only one object per folder may append. `keys` may be null: no MACs.
  AuditFile(std::string root, std::shared_ptr<const KeySet> keys, FileSystem& file_system)
      : AuditFile(std::move(root), std::move(keys), file_system, Settings()) {}
  AuditFile(std::string root, std::shared_ptr<const KeySet> keys, FileSystem& file_system, Settings settings);
  ~AuditFile() override;

  // Looks whether the log ends where it did. kCorruption (reason "integrity_<kind>"), named for people; entries can be
  // added all the same, and do not hide it. Nothing is written.
  Result<void> CheckEnd();
  // The log as it is counts as whole from now on, durably: for who has copied it here.
  Result<void> Adopt();
  // Writes down how far the log has come, durably.
  Result<void> Seal();

  Result<void> Append(const AuditEntry& entry) override;
  Result<Page> Read(std::uint64_t after, std::size_t limit) const override;

 private:
  Result<Page> ReadLines(std::uint64_t after, std::size_t limit) const;
  Result<void> Open() REQUIRES(mutex_);
  Result<void> FindEnd() REQUIRES(mutex_);
  Result<void> OpenHead(bool adopt) REQUIRES(mutex_);
  Result<void> MakeRoom() REQUIRES(mutex_);
  Result<void> Write(const std::string& line) REQUIRES(mutex_);
  void SealLater() REQUIRES(mutex_);
  void KeepSealing(const std::stop_token& stop);

  const std::string root_;
  const std::shared_ptr<const KeySet> keys_;
  FileSystem& file_system_;
  const Settings settings_;

  Mutex mutex_;
  UniqueFd file_ GUARDED_BY(mutex_);
  std::uint64_t size_ GUARDED_BY(mutex_) = 0;         // of the file
  std::uint64_t first_ GUARDED_BY(mutex_) = 0;        // the number of its first line; 0: it is empty
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;         // the number of the last line there is
  std::string last_digest_ GUARDED_BY(mutex_);        // of that line; empty: there is none
  bool last_has_mac_ GUARDED_BY(mutex_) = false;      // that line
  std::optional<AuditHead> head_ GUARDED_BY(mutex_);  // as it was written last
  std::condition_variable_any unsealed_;
  std::optional<std::chrono::steady_clock::time_point> seal_at_
      GUARDED_BY(mutex_);  // nullopt: the head is that of the last line

  Mutex seal_mutex_;     // held while a head is written; mutex_ is taken under it, never the other way round
  std::jthread sealer_;  // last: it uses all of the above
};

// Adds what is wrong with the audit log of a data folder: a line that was changed (auth), lines that are gone
// (missing), also the last ones. `keys` may be null: the folder is a plain one. A folder without a log is in order. Its
// files are not counted.
void VerifyAudit(const std::string& root, const KeySet* keys, FileSystem& file_system, VerifyReport& report);

}  // namespace reprise
