#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "crypto/key_set.h"
#include "reprise/file_system.h"
#include "reprise/journal.h"
#include "reprise/result.h"
#include "store/record.h"

namespace reprise {

// The form of one journal file (schemas/FILES.md). Its first line, the header, is a JWE that holds a key made for this
// file and is bound to chat and interaction like a checkpoint. Each record is one AES-256-GCM message under that key
// whose IV is its position, so that none can be changed, moved, left out or brought in from elsewhere. Without keys,
// header and records are plain, and each record is followed by a checksum. Immutable, thread-safe.
class JournalCipher {
 public:
  static constexpr std::size_t kOverhead = 16;  // how many bytes longer a sealed record is

  // For a new file. `keys` may be null: plain.
  static Result<JournalCipher> Create(const RecordPlace& place, const KeySet* keys);
  // For a file with this first line. kCorruption unless it was made for exactly this place.
  static Result<JournalCipher> FromHeader(const RecordPlace& place, std::string_view header, const KeySet* keys);

  // The place that a file with this first line claims, whoever wrote it; nullopt if it is no journal.
  static std::optional<RecordPlace> ClaimedPlace(std::string_view header);

  const std::string& header() const { return header_; }
  // Appends the sealed record to `out`. A position may be used once only. `associated` must be the same at Open.
  Result<void> Seal(std::string& out, std::uint64_t position, std::string_view associated,
                    std::string_view record) const;
  Result<std::string> Open(std::uint64_t position, std::string_view associated, std::string_view sealed) const;

 private:
  JournalCipher(std::string header, std::optional<SecretKey> key) : header_(std::move(header)), key_(std::move(key)) {}

  std::string header_;
  std::optional<SecretKey> key_;  // nullopt: plain
};

// The file of a journal that is being written. Shared by the run, which appends, and the store, which closes the file
// when the interaction is saved. Thread-safe.
class JournalFile {
 public:
  explicit JournalFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  // kIo after a failure (because the state of the disk is unknown, and a later sync must not be believed), and when the
  // file was closed.
  Result<void> Append(std::string_view bytes, Journal::Reach reach);
  void Close();

 private:
  Mutex mutex_;
  std::unique_ptr<WritableFile> file_ GUARDED_BY(mutex_);
};

// Makes the content of a journal's file (schemas/FILES.md): a header line, then the records.
class JournalText {
 public:
  explicit JournalText(JournalCipher cipher) : cipher_(std::move(cipher)) {}
  // Appends the next record in its stored form, after the header if it is the first.
  Result<void> Append(std::string& out, std::string_view record, Journal::Reach reach);

 private:
  const JournalCipher cipher_;
  std::uint64_t position_ = 0;
};

// A journal as a file. Each record is appended in one write, so that only the last one can be cut off.
class FileJournal final : public Journal {
 public:
  // Makes the file's name durable, after the first record that must survive a power loss.
  using SyncNames = std::function<Result<void>()>;

  // Begins a journal in an empty file. The header is written with the first record.
  FileJournal(std::unique_ptr<WritableFile> file, JournalCipher cipher, SyncNames sync_names)
      : file_(std::make_shared<JournalFile>(std::move(file))),
        text_(std::move(cipher)),
        sync_names_(std::move(sync_names)) {}
  // Atomically replaces the journal at `path` by one that begins with these records. `cipher` is a new one, because the
  // position of a record that was cut off must not be used again under the same key.
  static Result<std::unique_ptr<FileJournal>> Replace(FileSystem& file_system, const std::string& path,
                                                      JournalCipher cipher, const std::vector<std::string>& records,
                                                      SyncNames sync_names);

  Result<void> Append(std::string_view record, Reach reach) override;
  const std::shared_ptr<JournalFile>& file() const { return file_; }

 private:
  std::shared_ptr<JournalFile> file_;
  JournalText text_;
  SyncNames sync_names_;  // null once done
};

// Reads a journal as it grows, piece by piece. Each piece has whole records, the first one the header before them. Not
// thread-safe.
class JournalTextReader {
 public:
  // `keys` must outlive it; null: plain.
  JournalTextReader(RecordPlace place, const KeySet* keys) : place_(std::move(place)), keys_(keys) {
    place_.is_journal = true;
  }
  // Appends the piece's records. kCorruption if it is not the next piece of this journal, whole.
  Result<void> Read(std::string_view piece, std::vector<std::string>& records);

 private:
  RecordPlace place_;
  const KeySet* const keys_;
  std::optional<JournalCipher> cipher_;  // nullopt: the header comes next
  std::uint64_t position_ = 0;
};

// Reads a journal. A last record that is incomplete, or not all on disk, was being written when the power failed: it is
// left out, and `cut_off` is set. kCorruption if a record is damaged otherwise, kNotFound without a file.
Result<JournalContent> ReadJournalText(std::string_view text, const RecordPlace& place, const KeySet* keys);
Result<JournalContent> ReadJournalFile(FileSystem& file_system, const std::string& path, const RecordPlace& place,
                                       const KeySet* keys);

}  // namespace reprise
