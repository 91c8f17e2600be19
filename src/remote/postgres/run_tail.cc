#include "remote/postgres/run_tail.h"

#include <algorithm>
#include <map>

#include "base/try.h"
#include "remote/postgres/postgres_store.h"
#include "store/store_errors.h"

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
  const bool is_of_one = std::ranges::all_of(*batch, [&](const auto& each) { return each.first.key.tenant == tenant; });
  statement.tenant = is_of_one ? tenant : TenantDatabase::kAll;
  database_.Submit(std::move(statement), [self = shared_from_this(), batch](const Result<Rows>& rows) {
    std::vector<bool> kept(batch->size());
    for (std::size_t row = 0; rows && row < rows->size(); ++row) {
      kept[static_cast<std::size_t>(rows->number(row, 0)) - 1] = true;
    }
    // Records that came meanwhile are sent before the results are passed on.
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

// A run's records here are consecutive, so only the record before the first of them is looked for.
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

Result<void> RunTail::Begin() {
  Statement read;
  {
    const MutexLock lock(mutex_);
    read = ReadStatement();
  }
  const Rows rows = TRY(database_.Execute(std::move(read)));
  if (rows.empty()) return Fail(ErrorCode::kNotFound, "nothing is kept of this run");
  const MutexLock lock(mutex_);
  TakeRows(rows);
  return {};
}

// One statement, so that the state and the rows are of the same moment. If the run has ended, and so has no row any
// more, the journal's rows are complete.
Statement RunTail::ReadStatement() const {
  return {.sql =
              "with l as (insert into reprise.listeners(tenant, chat, number, instance, until) select tenant, chat, "
              "number, $6::uuid, clock_timestamp() + '5 seconds' from reprise.runs where tenant = $1 and chat = $2 "
              "and number = $3::int and state = 'running' on conflict (tenant, chat, number, instance) do update "
              "set until = excluded.until) "
              "select coalesce(r.state <> 'running', true), r.owner::text, j.epoch, j.position, j.record from (select) "
              "one left join reprise.runs r on (r.tenant, r.chat, r.number) = ($1, $2, $3::int) left join "
              "reprise.journal j on (j.tenant, j.chat, j.number) = ($1, $2, $3::int) and (j.epoch, j.position) >= "
              "($4::int, $5::int) where r.number is not null or j.number is not null order by j.epoch, j.position",
          .values = {key_.tenant, key_.run.chat_id.str(), std::int64_t{key_.run.interaction_id.number()},
                     std::int64_t{epoch_}, std::int64_t{next_row_}, signals_->instance()}};
}

void RunTail::Hear(int epoch, int row, std::string_view bytes) {
  {
    const MutexLock lock(mutex_);
    if (!heard_ || epoch < epoch_ || (epoch == epoch_ && row < next_row_)) return;
    // A row that is not from the run is only a reason to look into the database.
    const bool is_next = reader_ && !is_reading_ && epoch == epoch_ && row == next_row_;
    if (is_next && Take(epoch, row, bytes)) return;
  }
  Read();
}

void RunTail::Compare(bool has_ended, int epoch, int last_row) {
  {
    const MutexLock lock(mutex_);
    if (!heard_ || (!has_ended && std::pair(epoch, last_row) < std::pair(epoch_, next_row_))) return;
  }
  Read();
}

void RunTail::Read() {
  Statement read;
  {
    const MutexLock lock(mutex_);
    if (!heard_ || std::exchange(is_reading_, true)) {
      read_again_ = true;
      return;
    }
    read_again_ = false;
    read = ReadStatement();
  }
  database_.Submit(std::move(read), [weak = weak_from_this()](const Result<Rows>& rows) {
    const auto self = weak.lock();
    if (!self) return;
    bool again;
    {
      const MutexLock lock(self->mutex_);
      if (rows) self->TakeRows(*rows);
      self->is_reading_ = false;
      again = self->read_again_;
    }
    if (again) self->Read();  // else the next look comes within a second, if the database was away
  });
}

// A new owner is told first that we follow. It sends us the records that it keeps from then on; earlier ones are in
// `rows` or are looked for a second later.
void RunTail::TakeRows(const Rows& rows) {
  const bool has_ended = rows.empty() || rows.truth(0, 0);
  if (!has_ended && !rows.is_null(0, 1) && rows.text(0, 1) != owner_) {
    owner_ = rows.text(0, 1);
    signals_->TellFollowed(owner_, key_);
  }
  for (std::size_t row = 0; heard_ && row < rows.size(); ++row) {
    if (rows.is_null(row, 2)) continue;
    auto taken = Take(static_cast<int>(rows.number(row, 2)), static_cast<int>(rows.number(row, 3)), rows.text(row, 4));
    if (!taken) return Tell({.failure = std::move(taken.error())});
  }
  if (has_ended) Tell({.has_ended = true});
}

Result<void> RunTail::Take(int epoch, int row, std::string_view bytes) {
  if (!reader_ || epoch != epoch_) {
    reader_.emplace(RecordPlace{.chat = key_.run.chat_id, .interaction = key_.run.interaction_id}, keys_);
    epoch_ = epoch;
    read_ = 0;
  }
  HeldNews news;
  TRY(reader_->Read(bytes, news.records));
  next_row_ = row + 1;
  const std::size_t before = read_;
  read_ += news.records.size();
  const std::size_t known = std::min(news.records.size(), told_ - std::min(told_, before));
  news.records.erase(news.records.begin(), news.records.begin() + static_cast<std::ptrdiff_t>(known));
  if (news.records.empty()) return {};
  told_ = read_;
  Tell(std::move(news));
  return {};
}

void RunTail::Tell(HeldNews news) {
  if (!heard_) return;
  const bool is_last = news.has_ended || news.failure;
  heard_(std::move(news));
  if (is_last) heard_ = nullptr;
}

}  // namespace reprise
