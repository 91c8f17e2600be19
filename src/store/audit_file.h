#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/unique_fd.h"
#include "reprise/audit_log.h"
#include "reprise/file_system.h"
#include "store/verify.h"

namespace reprise {

// The audit log as files of a data folder (schemas/FILES.md): audit.jsonl, and audit.NNN.jsonl for what was written
// before that grew too large. Each line has a number and the digest of the line before it.
class AuditFile final : public AuditLog {
 public:
  // Touches nothing before the first entry. Only one object per folder may append. `file_system` is read from only.
  AuditFile(std::string root, FileSystem& file_system, std::uint64_t max_bytes = 8 * 1024 * 1024);

  Result<void> Append(const AuditEntry& entry) override;
  Result<Page> Read(std::uint64_t after, std::size_t limit) const override;

 private:
  // With mutex_ held.
  Result<void> Open();
  Result<void> MakeRoom();
  Result<void> Write(const std::string& line);

  const std::string root_;
  FileSystem& file_system_;
  const std::uint64_t max_bytes_;  // of one file

  std::mutex mutex_;
  UniqueFd file_;            // guarded by mutex_, as is what follows
  std::uint64_t size_ = 0;   // of the file
  std::uint64_t first_ = 0;  // the number of its first line; 0: it is empty
  std::uint64_t last_ = 0;   // the number of the last line there is
  std::string last_digest_;  // of that line; empty: there is none
};

// Adds what is wrong with the audit log of a data folder: a line that was changed (auth), lines that are gone
// (missing). That the last lines were taken away cannot be noticed. A folder without a log is in order. Its files are
// not counted.
void VerifyAudit(const std::string& root, FileSystem& file_system, VerifyReport& report);

}  // namespace reprise
