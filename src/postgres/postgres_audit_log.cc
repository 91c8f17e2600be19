#include "postgres/postgres_audit_log.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "store/file_names.h"

namespace reprise {
namespace {

// How far the log has come is written down that often: fewer lines than are added then can be cut off unnoticed.
constexpr std::chrono::seconds kSealEvery{30};

std::string HeadName() { return AuditHeadFile("").substr(1); }

}  // namespace

PostgresAuditLog::~PostgresAuditLog() {
  const MutexLock lock(mutex_);
  if (!head_ || head_->count == last_) return;
  if (const auto sealed = Seal(); !sealed) {
    LogWarning("how far the audit log has come could not be written", {{"detail", sealed.error().detail}});
  }
}

// The key of the MACs is for all processes what the first of them has made.
Result<void> PostgresAuditLog::Open() {
  const KeySet* const keys = store_.keys();
  auto head = TRY(ReadAuditHead(DatabaseFiles::kRoot, store_.files(), keys));
  if (!head) {
    AuditHead first;
    if (keys) first.key = SecretKey::Random();
    std::string text = TRY(AuditHeadText(first, keys));
    TRY(database_.Execute({.sql = "insert into reprise.folder_files(tenant, name, content) values ($1, $2, $3) on "
                                  "conflict do nothing",
                           .values = {database_.tenant(), HeadName(), SqlValue::Bytes(std::move(text))}}));
    head = TRY(ReadAuditHead(DatabaseFiles::kRoot, store_.files(), keys));
    if (!head) return Fail(ErrorCode::kIo, "the audit log's head was removed");
  }
  head_ = std::move(head);
  sealed_at_ = std::chrono::steady_clock::now();
  TRY(FindEnd());
  const bool is_cut = last_ < head_->count, is_changed = last_ == head_->count && last_digest_ != head_->last;
  if (!is_cut && !is_changed) return {};
  // The next line leaves the numbers out that are gone, and so shows it.
  LogError("the audit log does not end as it did", {{"last", std::to_string(last_)}});
  gap_ = head_->count;
  gap_digest_ = head_->last;
  last_ = gap_;
  last_digest_ = gap_digest_;
  return {};
}

Result<void> PostgresAuditLog::FindEnd() {
  last_ = gap_;
  last_digest_ = gap_digest_;
  const Rows rows =
      TRY(database_.Execute({.sql = "select seq, digest from reprise.audit where tenant = $1 order by seq desc limit 1",
                             .values = {database_.tenant()}}));
  if (rows.empty() || rows.number(0, 0) <= static_cast<std::int64_t>(gap_)) return {};
  last_ = static_cast<std::uint64_t>(rows.number(0, 0));
  last_digest_ = rows.text(0, 1);
  return {};
}

Result<void> PostgresAuditLog::Append(const AuditEntry& entry) {
  const MutexLock lock(mutex_);
  if (!head_) TRY(Open());
  for (;;) {
    const std::string line = AuditLine(entry, last_ + 1, last_digest_, head_->key ? &*head_->key : nullptr);
    if (TRY(Insert(line))) break;
    TRY(FindEnd());  // another process was faster, or a crash of the database has taken the line before
  }
  if (std::chrono::steady_clock::now() - sealed_at_ < kSealEvery) return {};
  if (const auto sealed = Seal(); !sealed) {
    LogWarning("how far the audit log has come could not be written", {{"detail", sealed.error().detail}});
  }
  return {};
}

// Two that say the same of the same moment are one: no two processes have a call in common. It need not be durable by
// itself: what a tool acts upon is, and comes after it.
Result<bool> PostgresAuditLog::Insert(const std::string& line) {
  const auto number = static_cast<std::int64_t>(last_ + 1);
  std::string digest = Sha256Digest({line});
  const Rows added = TRY(database_.Execute(
      {.sql =
           "with i as (insert into reprise.audit(tenant, seq, line, digest) select $1, $2::bigint, $3, $4 where "
           "$2::bigint - 1 <= $5::bigint or exists (select 1 from reprise.audit where tenant = $1 and seq = $2::bigint "
           "- 1) on conflict do nothing returning 1) "
           "select count(*), set_config('synchronous_commit', 'off', true) from i",
       .values = {database_.tenant(), number, line, digest, static_cast<std::int64_t>(gap_)}}));
  if (added.number(0, 0) == 0) {
    // Or this statement was, whose answer was lost.
    const Rows same = TRY(
        database_.Execute({.sql = "select 1 from reprise.audit where tenant = $1 and seq = $2::bigint and digest = $3",
                           .values = {database_.tenant(), number, digest}}));
    if (same.empty()) return false;
  }
  ++last_;
  last_digest_ = std::move(digest);
  return true;
}

// Another process may have said more. (If both say so at the same moment, it may be less for a while, but not wrong.)
Result<void> PostgresAuditLog::Seal() {
  sealed_at_ = std::chrono::steady_clock::now();
  const auto there = TRY(ReadAuditHead(DatabaseFiles::kRoot, store_.files(), store_.keys()));
  if (there && there->count >= last_) return {};
  head_->count = last_;
  head_->last = last_digest_;
  std::string text = TRY(AuditHeadText(*head_, store_.keys()));
  TRY(database_.Execute({.sql = "update reprise.folder_files set content = $3 where tenant = $1 and name = $2",
                         .values = {database_.tenant(), HeadName(), SqlValue::Bytes(std::move(text))}}));
  return {};
}

Result<AuditLog::Page> PostgresAuditLog::Read(std::uint64_t after, std::size_t limit) const {
  auto head = ReadAuditHead(DatabaseFiles::kRoot, store_.files(), store_.keys());
  auto page = TRY(ReadLines(after, limit));
  const auto anchor = after == 0 ? Page() : TRY(ReadLines(after - 1, 1));
  CheckAuditPage(std::move(head), after, anchor.lines.empty() ? "" : anchor.lines.front(), store_.keys() != nullptr,
                 page);
  return page;
}

Result<AuditLog::Page> PostgresAuditLog::ReadLines(std::uint64_t after, std::size_t limit) const {
  const Rows rows = TRY(database_.Execute(
      {.sql =
           "select seq, line from reprise.audit where tenant = $1 and seq > $2::bigint order by seq limit $3::bigint",
       .values = {database_.tenant(), static_cast<std::int64_t>(after), static_cast<std::int64_t>(limit) + 1}}));
  Page page;
  for (std::size_t row = 0; row < std::min(rows.size(), limit); ++row) {
    page.lines.emplace_back(rows.text(row, 1));
    if (rows.size() > limit) page.next = static_cast<std::uint64_t>(rows.number(row, 0));
  }
  return page;
}

}  // namespace reprise
