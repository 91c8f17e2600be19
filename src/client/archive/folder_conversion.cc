#include "client/archive/folder_conversion.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "app/device_push.h"
#include "app/folders.h"
#include "app/sealed_list.h"
#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/posix_file_system.h"
#include "base/system.h"
#include "base/try.h"
#include "client/archive/chat_reader.h"
#include "store/audit_file.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/file_interaction_store.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/incoming_chats.h"
#include "store/sealed_file_store.h"
#include "store/tenant_files.h"
#include "store/unsaved.h"
#include "store/verify.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxAuditBytes = 1024ULL * 1024 * 1024;

Result<void> CheckNothingUnsaved(const std::string& root) {
  for (const std::string& folder : UnsavedFolders(root)) {
    const auto chats = ChatFiles(folder, MakeRecordFormat(nullptr), Disk()).ListChats();
    if (!chats || chats->empty()) continue;
    return Fail(ErrorCode::kUnavailable,
                "interactions in " + folder + " wait to be brought home to this folder; start the server once before");
  }
  return {};
}

Result<void> CheckSound(const std::string& root, const std::shared_ptr<const KeySet>& keys, const FileBucket* bucket,
                        WorkCounter& counter, Progress& progress) {
  LongTask task{.doing = "checking", .things = "files"};
  if (const auto chats = ChatFiles(root, MakeRecordFormat(nullptr), Disk()).ListChats(); chats && progress.is_shown()) {
    const StoredCount count = CountStored(root, *chats);
    task.total = count.chats + count.interactions + count.journals + count.files;
  }
  progress.Begin(std::move(task));
  const auto report = TRY(VerifyStore(root, keys, Disk(), &counter, bucket));
  if (report.problems.empty()) return {};
  for (const Problem& problem : report.problems) Warn(problem.file + ": " + problem.kind + ": " + problem.message);
  return Fail(
      Error{.code = ErrorCode::kCorruption,
            .reason = "integrity_" + report.problems.front().kind,
            .message = root + " is damaged, and is left as it is (`reprise export` takes out what can be read)"});
}

// Adds the journals of unfinished interactions.
Result<void> AddJournals(const std::string& root, const KeySet* keys, const ChatFiles& files, IncomingChat& chat) {
  const ChatId& id = chat.summary.id;
  const auto listed = TRY(files.ListInteractions(id));
  for (const std::uint32_t number : listed.journals) {
    if (listed.checkpoints.contains(number)) continue;
    const InteractionId interaction = InteractionId::FromNumber(number);
    auto content = TRY(
        ReadJournalFile(Disk(), JournalPath(root, id, interaction), {.chat = id, .interaction = interaction}, keys));
    chat.journals.emplace(interaction, std::move(content.records));
  }
  return {};
}

Result<void> CopyChats(const std::string& root, const KeyChange& keys, const FileBucket* bucket,
                       const std::string& target, std::vector<ChatId>& converted, WorkCounter& counter,
                       Progress& progress) {
  const ChatFiles files(root, MakeRecordFormat(keys.from), Disk());
  auto chats = TRY(files.ListChats());
  std::ranges::sort(chats);
  progress.Begin(CopyTask(keys.to ? "sealing" : "opening", root, chats, progress));
  WorkCounter reads(counter.stop_source());
  auto from = TRY(FileInteractionStore::Open({.root = root,
                                              .keys = keys.from,
                                              .file_system = Disk(),
                                              .access = FileInteractionStore::Access::kReadOnly,
                                              .reads = &reads}));
  SealedFileStore chat_files({.root = root, .keys = keys.from, .file_system = Disk(), .bucket = bucket});
  FileBlobStore blobs(root, keys.from, Disk());
  auto incoming =
      TRY(IncomingChats::Open({.root = target, .keys = keys.to, .file_system = Disk(), .counter = &counter}));
  for (const ChatId& chat : chats) {
    auto whole = WholeChat(*from, chat);
    if (!whole && whole.error().code == ErrorCode::kNotFound) continue;  // an empty folder
    if (!whole) return Fail(std::move(whole.error()));
    whole->queue = TRY(files.ReadQueue(chat));
    auto added = AddJournals(root, keys.from.get(), files, *whole)
                     .and_then([&] { return AddFiles(chat_files, *whole); })
                     .and_then([&] { return AddBlobs(blobs, *whole); })
                     .and_then([&] { return incoming.Add(*whole); });
    if (!added) return added;
    converted.push_back(chat);
  }
  return {};
}

Result<void> CopyGrants(const std::string& root, const KeyChange& keys, const std::string& target) {
  const auto grants = TRY(ReadGrantFile(Disk(), root, keys.from.get()));
  if (grants.empty()) return {};
  return WriteGrantFile(Disk(), target, keys.to.get(), grants);
}

// The lines are not sealed, so they are equal in both; the record of the log's end is sealed.
Result<void> CopyAuditLog(const std::string& root, const KeyChange& keys, const std::string& target) {
  bool found = false;
  const auto entries = TRY(Disk().ListDirectory(root));
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_directory || !ParseAuditFile(entry.name)) continue;
    const auto text = TRY(Disk().ReadFile(root + "/" + entry.name, kMaxAuditBytes));
    TRY(ReplaceFile(Disk(), target + "/" + entry.name, text));
    found = true;
  }
  if (!found) return {};
  return Disk().SyncDirectory(target).and_then([&] { return AuditFile(target, keys.to, Disk()).Adopt(); });
}

Result<void> ExchangeFolders(const std::string& a, const std::string& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return {};
  return Fail(ErrorCode::kUnavailable,
              "this folder cannot be replaced in one step; convert into another one with --output",
              a + ": " + std::generic_category().message(errno));
}

// DIR.plain.20250115T100000.000Z: with the old form of the folder.
std::string KeptName(const std::string& root, bool plain) {
  std::string time = FormatTimestamp(Now());
  time.erase(std::remove_if(time.begin(), time.end(), [](char c) { return c == ':' || c == '-'; }), time.end());
  return root + std::string(plain ? kKeptPlain : kKeptSealed) + time;
}

}  // namespace

LongTask CopyTask(const std::string& doing, const std::string& root, const std::vector<ChatId>& chats,
                  const Progress& progress) {
  LongTask task{.doing = doing, .things = "interactions and files", .steps_each = 2};
  if (!progress.is_shown()) return task;
  const StoredCount count = CountStored(root, chats);
  task.total = count.interactions + count.files;
  return task;
}

Result<std::string> ConvertFolder(const std::string& given_root, const KeyChange& keys, const FileBucket* bucket,
                                  std::vector<ChatId>& converted, WorkCounter& counter, Progress& progress) {
  std::error_code failed;
  const std::string root = std::filesystem::canonical(given_root, failed).string();
  if (failed) return Fail(NoDataFolder(given_root));
  const auto lock = TRY(DirectoryLock::Acquire(LockFile(root)));
  TRY(CheckNothingUnsaved(root).and_then([&] { return CheckSound(root, keys.from, bucket, counter, progress); }));

  const std::string made = root + std::string(kBeingMade) + RandomHex(8);
  auto done = CopyChats(root, keys, bucket, made, converted, counter, progress)
                  .and_then([&] { return CopyGrants(root, keys, made); })
                  .and_then([&] { return CopyAuditLog(root, keys, made); })
                  .and_then([&] { return CopySealedLists(Disk(), root, keys.from.get(), made, keys.to.get()); })
                  .and_then([&] { return CopyDevices(Disk(), root, keys.from.get(), made, keys.to.get()); })
                  .and_then([&] { return CheckSound(made, keys.to, nullptr, counter, progress); })
                  .and_then([&] { return ExchangeFolders(root, made); });
  if (!done) {
    std::filesystem::remove_all(made, failed);
    return Fail(std::move(done.error()));
  }
  const std::string kept = KeptName(root, keys.from == nullptr);
  auto named =
      Disk().SyncDirectory(ParentDirectory(root)).and_then([&] { return Disk().Rename(made, kept); }).and_then([&] {
        return Disk().SyncDirectory(ParentDirectory(root));
      });
  return named ? kept : made;  // under either name the old folder is complete
}

}  // namespace reprise
