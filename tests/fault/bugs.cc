#include "fault/bugs.h"

#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/atomic_write.h"
#include "support/forwarding_file_system.h"
#include "support/forwarding_store.h"

namespace reprise {
namespace {

class NoFileSync final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    auto file = base_.CreateFile(path);
    if (!file) return file;
    return std::make_unique<File>(*std::move(file));
  }

 private:
  struct File final : WritableFile {
    explicit File(std::unique_ptr<WritableFile> with_base) : base(std::move(with_base)) {}
    Result<void> Append(std::string_view data) override { return base->Append(data); }
    Result<void> Sync() override { return {}; }
    Result<void> Close() override { return base->Close(); }
    std::unique_ptr<WritableFile> base;
  };
};

class NoDirectorySync final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<void> SyncDirectory(const std::string&) override { return {}; }
};

template <SyncReach reach>
class Claims final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  SyncReach sync_reach(const std::string&) override { return reach; }
};

// Gives a file its name first, then its bytes.
class RenameFirst final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    auto file = base_.CreateFile(path);
    if (!file || !IsTemporaryName(path.substr(path.rfind('/') + 1))) return file;
    const auto held = std::make_shared<Held>();
    held->file = *std::move(file);
    const std::lock_guard lock(mutex_);
    held_[path] = held;
    return std::make_unique<File>(held);
  }
  Result<void> Rename(const std::string& from, const std::string& to) override {
    auto renamed = base_.Rename(from, to);
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(from);
    if (!renamed || found == held_.end()) return renamed;
    const auto held = found->second;
    held_.erase(found);
    held->named = true;
    return held->file->Append(held->bytes).and_then([&] { return held->file->Sync(); });
  }

 private:
  struct Held {
    std::unique_ptr<WritableFile> file;
    std::string bytes;
    bool named = false;
  };
  struct File final : WritableFile {
    explicit File(std::shared_ptr<Held> with_held) : held(std::move(with_held)) {}
    Result<void> Append(std::string_view data) override {
      if (held->named) return held->file->Append(data);
      held->bytes += data;
      return {};
    }
    Result<void> Sync() override { return held->named ? held->file->Sync() : Result<void>(); }
    Result<void> Close() override { return {}; }
    std::shared_ptr<Held> held;
  };
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Held>> held_;  // by temporary path
};

// Removes the old file before the new one is in its place.
class RemoveThenRename final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<void> Rename(const std::string& from, const std::string& to) override {
    static_cast<void>(base_.RemoveFile(to));
    return base_.Rename(from, to);
  }
};

// Writes each record with the next one, after its events are shown, and never syncs in time.
class LateJournal final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId& c, InteractionId i,
                                                const std::vector<std::string>& records) override {
    auto journal = base_.BeginJournal(c, i, records);
    if (!journal) return journal;
    return std::make_unique<Late>(*std::move(journal));
  }

 private:
  struct Late final : Journal {
    explicit Late(std::unique_ptr<Journal> with_base) : base(std::move(with_base)) {}
    Result<void> Append(std::string_view record, Reach reach) override {
      auto last = std::exchange(held, std::pair(std::string(record), reach));
      if (last.first.empty()) return {};
      return base->Append(last.first, last.second);
    }
    std::unique_ptr<Journal> base;
    std::pair<std::string, Reach> held;
  };
};

// Records survive the end of the process, but no power loss.
class NoJournalSync final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId& c, InteractionId i,
                                                const std::vector<std::string>& records) override {
    auto journal = base_.BeginJournal(c, i, records);
    if (!journal) return journal;
    return std::make_unique<Unsynced>(*std::move(journal));
  }

 private:
  struct Unsynced final : Journal {
    explicit Unsynced(std::unique_ptr<Journal> with_base) : base(std::move(with_base)) {}
    Result<void> Append(std::string_view record, Reach) override { return base->Append(record, Reach::kProcess); }
    std::unique_ptr<Journal> base;
  };
};

class DropsJournalFirst final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<void> SaveInteraction(const Interaction& interaction) override {
    static_cast<void>(base_.DropJournal(interaction.chat_id, interaction.id));
    return base_.SaveInteraction(interaction);
  }
};

// All records ever appended, unchanged.
struct Records {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> of;  // by place
};
std::string Place(const ChatId& chat, InteractionId id) { return chat.str() + "/" + id.str(); }

class KeepsRecords final : public ForwardingStore {
 public:
  KeepsRecords(InteractionStore& base, std::shared_ptr<Records> records)
      : ForwardingStore(base), records_(std::move(records)) {}
  Result<std::unique_ptr<Journal>> BeginJournal(const ChatId& c, InteractionId i,
                                                const std::vector<std::string>& records) override {
    auto journal = base_.BeginJournal(c, i, records);
    if (!journal) return journal;
    const std::lock_guard lock(records_->mutex);
    records_->of[Place(c, i)] = records;
    return std::make_unique<Keeping>(*std::move(journal), records_, Place(c, i));
  }

 private:
  struct Keeping final : Journal {
    Keeping(std::unique_ptr<Journal> with_base, std::shared_ptr<Records> with_records, std::string its_place)
        : base(std::move(with_base)), records(std::move(with_records)), place(std::move(its_place)) {}
    Result<void> Append(std::string_view record, Reach reach) override {
      {
        const std::lock_guard lock(records->mutex);
        records->of[place].emplace_back(record);
      }
      return base->Append(record, reach);
    }
    std::unique_ptr<Journal> base;
    std::shared_ptr<Records> records;
    std::string place;
  };
  const std::shared_ptr<Records> records_;
};

// A reader that takes a torn record for a whole one.
class BelievesTornRecord final : public ForwardingStore {
 public:
  BelievesTornRecord(InteractionStore& base, std::shared_ptr<Records> records)
      : ForwardingStore(base), records_(std::move(records)) {}
  Result<JournalContent> ReadJournal(const ChatId& c, InteractionId i) override {
    auto content = base_.ReadJournal(c, i);
    if (!content || !content->cut_off) return content;
    const std::lock_guard lock(records_->mutex);
    const auto& records = records_->of[Place(c, i)];
    const std::size_t next = content->records.size();
    if (next < records.size()) content->records.push_back(records[next].substr(0, records[next].size() / 2));
    return content;
  }

 private:
  const std::shared_ptr<Records> records_;
};

template <typename T, typename Base>
std::function<std::unique_ptr<Base>(Base&)> Make() {
  return [](Base& base) { return std::make_unique<T>(base); };
}

}  // namespace

std::vector<Bug> AllBugs() {
  const auto records = std::make_shared<Records>();
  return {
      {.name = "files are not synced", .disk = Make<NoFileSync, FileSystem>()},
      {.name = "directories are not synced", .disk = Make<NoDirectorySync, FileSystem>()},
      {.name = "syncs do not reach all names",
       .disk = Make<Claims<SyncReach::kAllNames>, FileSystem>(),
       .claims_reach = true},
      {.name = "syncs do not reach new names",
       .disk = Make<Claims<SyncReach::kNewNames>, FileSystem>(),
       .claims_reach = true},
      {.name = "rename before write and sync", .disk = Make<RenameFirst, FileSystem>()},
      {.name = "the old file is removed before the new one is there", .disk = Make<RemoveThenRename, FileSystem>()},
      {.name = "shown before it is in the journal", .store = Make<LateJournal, InteractionStore>()},
      {.name = "the journal is not synced", .store = Make<NoJournalSync, InteractionStore>()},
      {.name = "the journal goes before the checkpoint is durable",
       .store = Make<DropsJournalFirst, InteractionStore>()},
      {.name = "half a record is believed",
       .store = [records](InteractionStore& base) { return std::make_unique<KeepsRecords>(base, records); },
       .reader = [records](InteractionStore& base) { return std::make_unique<BelievesTornRecord>(base, records); }},
  };
}

}  // namespace reprise
