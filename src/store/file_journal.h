#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/journal.h"
#include "store/journal_cipher.h"

namespace reprise {

// A journal as a file: a header line, then a line per record. Appended in one write each, so that what is cut off is
// the last line.
class FileJournal final : public Journal {
 public:
  // Makes the file's name durable, before the first record that is to survive a power loss.
  using SyncNames = std::function<Result<void>()>;

  // Creates `path`, which must not exist. The header is written with the first record.
  static Result<std::unique_ptr<FileJournal>> Create(FileSystem& file_system, const std::string& path,
                                                     JournalCipher cipher, SyncNames sync_names);
  // Replaces the journal at `path` by one that begins with these records, all or nothing: a position whose record was
  // cut off cannot be used again under the same key.
  static Result<std::unique_ptr<FileJournal>> Replace(FileSystem& file_system, const std::string& path,
                                                      JournalCipher cipher, const std::vector<std::string>& records,
                                                      SyncNames sync_names);

  Result<void> Append(std::string_view record, Reach reach) override;

 private:
  FileJournal(std::unique_ptr<WritableFile> file, JournalCipher cipher, SyncNames sync_names)
      : file_(std::move(file)), cipher_(std::move(cipher)), sync_names_(std::move(sync_names)) {}

  // The record as it stands in the file, behind the header if it is the first.
  Result<std::string> NextLine(std::string_view record);

  std::unique_ptr<WritableFile> file_;  // null after a failure
  const JournalCipher cipher_;
  SyncNames sync_names_;  // null once done
  std::uint64_t position_ = 0;
};

// Reads a journal. A last line that is not whole, or does not authenticate, was being written when the power went: it
// is left out and said to be. kCorruption if a line before it is damaged, kNotFound without a file.
Result<JournalContent> ReadJournalFile(FileSystem& file_system, const std::string& path, const RecordPlace& place,
                                       const KeySet* keys);

}  // namespace reprise
