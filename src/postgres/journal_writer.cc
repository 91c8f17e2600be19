#include "postgres/journal_writer.h"

#include <algorithm>
#include <map>

#include "postgres/postgres_store.h"

namespace reprise {
namespace {

constexpr std::size_t kMostRecords = 256, kMostBytes = 4 * 1024 * 1024;

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
  Statement statement = batch->size() == 1 ? ForOne(batch->front().first) : ForMany(*batch);
  const std::string& tenant = batch->front().first.key.tenant;
  const bool is_of_one =
      std::all_of(batch->begin(), batch->end(), [&](const auto& each) { return each.first.key.tenant == tenant; });
  statement.tenant = is_of_one ? tenant : TenantDatabase::kAll;
  database_.Submit(std::move(statement), [self = shared_from_this(), batch](const Result<Rows>& rows) {
    std::vector<bool> kept(batch->size());
    for (std::size_t row = 0; rows && row < rows->size(); ++row) {
      kept[static_cast<std::size_t>(rows->number(row, 0)) - 1] = true;
    }
    // What came meanwhile goes out before anybody is told.
    self->SendWhatWaits();
    for (std::size_t place = 0; place < batch->size(); ++place) (*batch)[place].second(kept[place]);
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
  std::vector<std::string> tenants, chats, tokens, records;
  std::vector<std::int64_t> numbers, rows, firsts;
  std::map<RunKey, int> first_of;
  bool to_disk = false;
  for (const auto& [record, done] : batch) {
    tenants.push_back(record.key.tenant);
    chats.push_back(record.key.run.chat_id.str());
    numbers.push_back(record.key.run.interaction_id.number());
    tokens.push_back(record.token);
    rows.push_back(record.row);
    firsts.push_back(first_of.try_emplace(record.key, record.row).first->second);
    records.push_back(record.bytes);
    to_disk = to_disk || record.reach == Journal::Reach::kPowerLoss;
  }
  return {.sql = "select * from reprise.append_records($1, $2, $3, $4, $5, $6, $7, $8)",
          .values = {SqlValue::Texts(tenants), SqlValue::Texts(chats), SqlValue::Ints(numbers), SqlValue::Uuids(tokens),
                     SqlValue::Ints(rows), SqlValue::Ints(firsts), SqlValue::ByteStrings(records), CommitFor(to_disk)},
          .is_patient = true};
}

}  // namespace reprise
