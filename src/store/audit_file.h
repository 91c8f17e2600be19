#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/system.h"
#include "crypto/key_set.h"
#include "reprise/audit_log.h"
#include "reprise/file_system.h"
#include "store/verify.h"

namespace reprise {

// The content of .audit_head: the end of the log when it was written.
struct AuditHead {
  std::uint64_t count = 0;       // lines
  std::string last;              // digest of the last line; empty: there are none
  std::uint64_t keyed_from = 1;  // the number of the first line that has a MAC
  std::uint64_t unproven = 0;    // lines up to this number are older than the loss of a head
  std::optional<SecretKey> key;  // for the MACs; nullopt: a plain folder
};

// nullopt if there is no head yet. kCorruption, kIo.
Result<std::optional<AuditHead>> ReadAuditHead(const std::string& root, FileSystem& file_system, const KeySet* keys);
// The text for .audit_head, sealed if there are keys.
Result<std::string> AuditHeadText(const AuditHead& head, const KeySet* keys);
// Replaces the file, durably.
Result<void> WriteAuditHead(const std::string& root, FileSystem& file_system, const KeySet* keys,
                            const AuditHead& head);
// Ok if the log ends where the head says, or later. `last`: the number of the last line; `last_digest`: its digest.
// kCorruption.
Result<void> CheckAuditEnd(const AuditHead& head, std::uint64_t last, const std::string& last_digest);
// A line of the log, without the line feed. `previous`: the digest of the line before it, empty for the first. `key`
// null: no MAC.
std::string AuditLine(const AuditEntry& entry, std::uint64_t number, const std::string& previous, const SecretKey* key);

// AuditLog::Read over the lines that `read` returns, with checks. `head`: read before the page. `sealed`: the log has
// MACs.
Result<AuditLog::Page> ReadAuditPage(
    Result<std::optional<AuditHead>> head, std::uint64_t after, std::size_t limit, bool sealed,
    const std::function<Result<AuditLog::Page>(std::uint64_t after, std::size_t limit)>& read);

// The audit log as files of a data folder (schemas/FILES.md): audit.jsonl grows, and is renamed to audit.NNN.jsonl when
// it is too large. Each line has a number, the digest of the line before it and, with keys, a MAC. .audit_head records
// the log's end. It is written a while after a line was added, and by the destructor.
class AuditFile final : public AuditLog {
 public:
  struct Settings {
    std::uint64_t max_bytes = 8 * 1024 * 1024;  // of one file
    std::chrono::milliseconds seal_after = std::chrono::seconds(30);
  };
  // Touches no files yet. Only one object per folder may append. `keys` null: no MACs.
  AuditFile(std::string root, std::shared_ptr<const KeySet> keys, FileSystem& file_system)
      : AuditFile(std::move(root), std::move(keys), file_system, Settings()) {}
  AuditFile(std::string root, std::shared_ptr<const KeySet> keys, FileSystem& file_system, Settings settings);
  ~AuditFile() override;

  // Before the first entry: checks that the log ends where its head says, or later. kCorruption (reason
  // "integrity_<kind>"); entries can still be added, and do not hide the damage. Writes nothing.
  Result<void> CheckEnd();
  // For a log that was copied here without a readable head: accepts its present end, durably.
  Result<void> Adopt();
  // Writes the head for the log's present end, durably.
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
  std::uint64_t size_ GUARDED_BY(mutex_) = 0;         // of the growing file
  std::uint64_t first_ GUARDED_BY(mutex_) = 0;        // the number of its first line; 0: none
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;         // the number of the log's last line
  std::string last_digest_ GUARDED_BY(mutex_);        // of that line; empty: there are none
  bool last_has_mac_ GUARDED_BY(mutex_) = false;      // of that line
  std::optional<AuditHead> head_ GUARDED_BY(mutex_);  // as last written
  std::condition_variable_any unsealed_;
  std::optional<std::chrono::steady_clock::time_point> seal_at_
      GUARDED_BY(mutex_);  // nullopt: the head names the last line

  Mutex seal_mutex_;     // held by Seal; taken before mutex_
  std::jthread sealer_;  // last: it uses all of the above
};

// Adds the defects of a data folder's audit log: changed lines (auth) and missing ones (missing), also at the end.
// `keys` null: a plain folder. A folder with neither log nor head has no defects. The files are not counted.
void VerifyAudit(const std::string& root, const KeySet* keys, FileSystem& file_system, VerifyReport& report);

}  // namespace reprise
