#include "store/file_journal.h"

#include <utility>

#include "base/atomic_write.h"
#include "store/file_names.h"

namespace reprise {
namespace {

std::vector<std::string_view> WholeLines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return lines;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<std::unique_ptr<FileJournal>> FileJournal::Create(FileSystem& file_system, const std::string& path,
                                                         JournalCipher cipher, SyncNames sync_names) {
  auto file = file_system.CreateFile(path);
  if (!file) return Fail(std::move(file.error()));
  return std::unique_ptr<FileJournal>(new FileJournal(*std::move(file), std::move(cipher), std::move(sync_names)));
}

Result<std::unique_ptr<FileJournal>> FileJournal::Replace(FileSystem& file_system, const std::string& path,
                                                          JournalCipher cipher, const std::vector<std::string>& records,
                                                          SyncNames sync_names) {
  std::unique_ptr<FileJournal> journal(new FileJournal(nullptr, std::move(cipher), std::move(sync_names)));
  std::string lines;
  for (const std::string& record : records) {
    auto line = journal->NextLine(record);
    if (!line) return Fail(std::move(line.error()));
    lines += *line;
  }
  auto file = AtomicFile::Create(file_system, path).and_then([&](AtomicFile made) { return made.CommitOpen(lines); });
  if (!file) return Fail(std::move(file.error()));
  journal->file_ = *std::move(file);
  return journal;
}

Result<std::string> FileJournal::NextLine(std::string_view record) {
  auto line = cipher_.Seal(position_, record);
  if (!line) return line;
  line->push_back('\n');
  if (position_++ == 0) line->insert(0, cipher_.header() + "\n");
  return line;
}

Result<void> FileJournal::Append(std::string_view record, Reach reach) {
  if (!file_) return Fail(ErrorCode::kIo, "the journal could not be written before");
  const auto line = NextLine(record);
  if (!line) return Fail(line.error());
  auto written = file_->Append(*line);
  if (written && reach == Reach::kPowerLoss) {
    written = file_->Sync();
    if (written && sync_names_) written = std::exchange(sync_names_, nullptr)();
  }
  // What is on disk now is not known, and a sync that failed once must not be believed later.
  if (!written) file_.reset();
  return written;
}

Result<JournalContent> ReadJournalFile(FileSystem& file_system, const std::string& path, const RecordPlace& place,
                                       const KeySet* keys) {
  const auto text = file_system.ReadFile(path, kMaxRecordBytes);
  if (!text) return Fail(text.error());
  const auto lines = WholeLines(*text);
  JournalContent content{.records = {}, .cut_off = lines.empty() || text->back() != '\n'};
  if (lines.empty()) return content;
  const auto cipher = JournalCipher::FromHeader(place, lines.front(), keys);
  if (!cipher) return Fail(cipher.error());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto record = cipher->Open(i - 1, lines[i]);
    if (!record && i + 1 == lines.size() && !content.cut_off) {
      content.cut_off = true;
      return content;
    }
    if (!record)
      return Fail(IntegrityError("auth", place, "record " + std::to_string(i) + " of its journal is damaged"));
    content.records.push_back(*std::move(record));
  }
  return content;
}

}  // namespace reprise
