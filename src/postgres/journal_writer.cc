#include "postgres/journal_writer.h"

#include <algorithm>
#include <map>
#include <set>

#include "postgres/postgres_store.h"

namespace reprise {
namespace {

// For longer lists PostgreSQL makes plans that may read whole tables.
constexpr std::size_t kMostRecords = 64, kMostBytes = 4 * 1024 * 1024;

const char* CommitFor(bool to_disk) { return to_disk ? "on" : "off"; }

}  // namespace

void JournalWriter::Add(Record record, Done done) {
  {
    const MutexLock lock(mutex_);
    waiting_.emplace_back(std::move(record), std::move(done));
    if (is_sending_) return;
    is_sending_ = true;
  }
  SendWhatWaits();
}

void JournalWriter::SendWhatWaits() {
  const auto batch = std::make_shared<Batch>();
  {
    const MutexLock lock(mutex_);
    for (std::size_t bytes = 0; !waiting_.empty() && batch->size() < kMostRecords && bytes < kMostBytes;) {
      bytes += waiting_.front().first.bytes.size();
      batch->push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    is_sending_ = !batch->empty();
    if (batch->empty()) return;
  }
  database_.Submit(batch->size() == 1 ? ForOne(batch->front().first) : ForMany(*batch),
                   [self = shared_from_this(), batch](const Result<Rows>& rows) {
                     std::set<std::int64_t> kept;
                     for (std::size_t row = 0; rows && row < rows->size(); ++row) kept.insert(rows->number(row, 0));
                     std::int64_t place = 0;
                     for (const auto& [record, done] : *batch) done(kept.contains(++place));
                     self->SendWhatWaits();
                   });
}

Statement JournalWriter::ForOne(const Record& record) {
  return {.sql = "select 1 where reprise.append_record($1, $2, $3::int, $4::uuid, $5::int, $6, $7)",
          .values = {record.key.tenant, record.key.run.chat_id.str(),
                     std::int64_t{record.key.run.interaction_id.number()}, record.token, std::int64_t{record.row},
                     SqlValue::Bytes(record.bytes), CommitFor(record.reach == Journal::Reach::kPowerLoss)},
          .is_patient = true};
}

// A run's records here follow each other: it is enough to look for what was before the first of them.
Statement JournalWriter::ForMany(const Batch& batch) {
  std::vector<std::string> tenants, chats, numbers, tokens, rows, firsts, records;
  std::map<RunKey, int> first_of;
  bool to_disk = false;
  for (const auto& [record, done] : batch) {
    tenants.push_back(record.key.tenant);
    chats.push_back(record.key.run.chat_id.str());
    numbers.push_back(std::to_string(record.key.run.interaction_id.number()));
    tokens.push_back(record.token);
    rows.push_back(std::to_string(record.row));
    firsts.push_back(std::to_string(first_of.try_emplace(record.key, record.row).first->second));
    records.push_back(record.bytes);
    to_disk = to_disk || record.reach == Journal::Reach::kPowerLoss;
  }
  return {.sql =
              "with k as (select * from unnest($1::text[], $2::text[], $3::int[], $4::uuid[], $5::int[], $6::int[], "
              "$7::bytea[]) with ordinality as k(tenant, chat, number, token, position, first, record, place)), "
              "mine as (select r.epoch, k.* from k join reprise.runs r using (tenant, chat, number) where r.token = "
              "k.token and (k.first = 0 or exists (select 1 from reprise.journal j where j.tenant = k.tenant and "
              "j.chat = k.chat and j.number = k.number and j.epoch = r.epoch and j.position = k.first - 1)) for "
              "share of r), "
              "i as (insert into reprise.journal(tenant, chat, number, epoch, position, record) select tenant, "
              "chat, number, epoch, position, record from mine on conflict do nothing) "
              "select place, set_config('synchronous_commit', $8, true) from mine",
          .values = {SqlTextArray(tenants), SqlTextArray(chats), SqlTextArray(numbers), SqlTextArray(tokens),
                     SqlTextArray(rows), SqlTextArray(firsts), SqlByteArray(records), CommitFor(to_disk)},
          .is_patient = true};
}

}  // namespace reprise
