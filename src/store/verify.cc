#include "store/verify.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "store/audit_file.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/sealed_file_store.h"
#include "store/tenant_files.h"

namespace reprise {
namespace {

constexpr std::string_view kReasonPrefix = "integrity_";

// An Error as a problem of this file.
Problem ProblemOf(std::string file, const Error& error) {
  if (error.code != ErrorCode::kCorruption || !error.reason.starts_with(kReasonPrefix)) {
    return {std::move(file), "auth", "it cannot be read: " + error.message};
  }
  std::string message = error.message;
  const std::string name = error.detail + ": ";  // the message begins with it
  if (message.starts_with(name)) message.erase(0, name.size());
  return {std::move(file), error.reason.substr(kReasonPrefix.size()), std::move(message)};
}

std::optional<Problem> JournalProblem(const std::string& file, std::string_view text, const RecordPlace& place,
                                      const KeySet* keys) {
  const auto content = ReadJournalText(text, place, keys);
  if (!content) return ProblemOf(file, content.error());
  // The file is only a first line without an end. If that is whole all the same, it may belong to another file.
  if (content->cut_off && text.find('\n') == std::string_view::npos && ParseJson(text)) {
    const auto cipher = JournalCipher::FromHeader(place, text, keys);
    if (!cipher) return ProblemOf(file, cipher.error());
  }
  return std::nullopt;
}

// Whether an error says nothing about the files: the bucket is unavailable, or the check was cancelled.
bool EndsCheck(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kCancelled;
}

// Checks the files of one chat once.
class ChatCheck {
 public:
  ChatCheck(const std::string& root, ChatId chat, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
            WorkCounter* counter, const FileBucket* bucket)
      : root_(root),
        chat_(std::move(chat)),
        keys_(std::move(keys)),
        file_system_(file_system),
        counter_(counter),
        bucket_(bucket),
        format_(MakeRecordFormat(keys_)),
        files_(root, MakeRecordFormat(keys_), file_system) {}

  // kNotFound if there is nothing of this chat, kCancelled, kUnavailable.
  Result<VerifyReport> Run() && {
    // The index first: a server writes an interaction before the index that names it, so the listing then has every
    // interaction that the index names.
    ReadIndex();
    const auto listed = TRY(Listed(InteractionsName(chat_), files_.ListInteractions(chat_)));
    const auto files = TRY(Listed(FilesName(chat_), ListFileIds(root_, chat_, file_system_)));
    const auto blobs = TRY(Listed(BlobsName(chat_), ListBlobNames(root_, chat_, file_system_)));
    const bool nothing = listed.checkpoints.empty() && listed.journals.empty() && files.empty() && blobs.empty();
    if (!has_index_ && nothing && problems_.empty()) {
      return Fail(ErrorCode::kNotFound, "no such chat");
    }
    TRY(CheckFiles(listed, files));
    for (const std::string& name : blobs) {
      CheckBlob(name);
      TRY(CountStep(counter_));
    }
    CheckHistory();
    // A chat's first index comes after its first checkpoint and before its second. It is looked for once more, because
    // both may have come since.
    if (!has_index_ && listed.checkpoints.size() > 1 && !HasIndexNow()) {
      Add(RecordName(chat_, std::nullopt), "missing", "the file is gone");
    }
    // The same for one that is cut off: a power loss may leave the first one so, and it is rebuilt.
    if (index_cut_off_ && (listed.checkpoints.size() > 1 || nothing)) Add(*index_problem_);
    for (auto& [file, problem] : problems_) report_.problems.push_back(std::move(problem));
    return std::move(report_);
  }

 private:
  void Add(std::string file, std::string kind, std::string message) {
    Problem problem{file, std::move(kind), std::move(message)};
    problems_.emplace(std::move(file), std::move(problem));  // the first problem of a file is the cause
  }
  void Add(Problem problem) { problems_.emplace(problem.file, problem); }

  // Something else in the place of a folder is a problem of its own, and has no entries.
  template <typename Entries>
  Result<Entries> Listed(const std::string& name, Result<Entries> entries) {
    if (entries || entries.error().code != ErrorCode::kCorruption) return entries;
    Add(ProblemOf(name, entries.error()));
    return Entries();
  }

  // Fails if the check is cancelled or the bucket unavailable.
  Result<void> CheckFiles(const InteractionFiles& listed, const std::vector<FileId>& files) {
    if (has_index_) {
      TRY(CountStep(counter_));
    }
    for (const FileId& id : files) {
      TRY(CheckFile(id));
      TRY(CountStep(counter_));
    }
    for (const std::uint32_t number : listed.checkpoints) {
      const bool is_newest = number == *listed.checkpoints.rbegin() && number > (index_ ? index_->last : 0);
      CheckInteraction(InteractionId::FromNumber(number), is_newest && listed.journals.contains(number));
      TRY(CountStep(counter_));
    }
    for (const std::uint32_t number : listed.journals) {
      CheckJournal(InteractionId::FromNumber(number));
      TRY(CountStep(counter_));
    }
    CheckQueue();
    return {};
  }

  bool HasIndexNow() const {
    const auto text = file_system_.ReadFile(ChatFile(root_, chat_), kMaxRecordBytes);
    return text || !IsNotFound(text.error());
  }

  void ReadIndex() {
    auto index = files_.ReadIndex(chat_, index_cut_off_);
    has_index_ = !index || *index;
    if (!has_index_) return;
    ++report_.checked;
    if (index) {
      index_ = *std::move(index);
    } else {
      index_problem_ = ProblemOf(RecordName(chat_, std::nullopt), index.error());
      if (!index_cut_off_) Add(*index_problem_);
    }
  }

  // `unproven`: see ChatOnDisk.
  void CheckInteraction(InteractionId id, bool unproven) {
    ++report_.checked;
    auto stored = files_.ReadInteraction(chat_, id);
    if (stored) {
      found_.emplace(id, FoundRecord{.links = std::move(stored->links), .digest = std::move(stored->digest)});
    } else if (unproven && ChatFiles::MayBeUnsynced(stored.error())) {
      // The power failed before its sync; the next start continues from its journal.
    } else if (IsNotFound(stored.error())) {
      Add(RecordName(chat_, id), "missing", "the file is gone");
    } else {
      Add(ProblemOf(RecordName(chat_, id), stored.error()));
    }
  }

  void CheckJournal(InteractionId id) {
    const auto text = ReadRecordText(file_system_, JournalPath(root_, chat_, id), {.chat = chat_, .interaction = id});
    if (!text && IsNotFound(text.error())) return;  // the interaction has ended meanwhile
    ++report_.checked;
    const std::string name = JournalName(chat_, id);
    if (!text) {
      Add(ProblemOf(name, text.error()));
    } else if (auto problem = JournalProblem(name, *text, {.chat = chat_, .interaction = id}, keys_.get())) {
      // After a power loss a file may have an old name and a new content, or the other way round. The journal of an
      // interaction that has its checkpoint is not needed.
      const bool held_another = problem->kind == "swap" && (found_.contains(id) || ServedAnother(id, *text));
      if (!held_another) Add(*std::move(problem));
    }
  }

  // Also for a file that is only a first line without an end.
  bool ServedAnother(InteractionId id, const std::string& text) const {
    const bool has_end = text.find('\n') != std::string::npos;
    return files_.ReadJournal({.chat = chat_, .interaction = id}, has_end ? text : text + "\n", keys_.get())
        .has_value();
  }

  void CheckQueue() {
    const auto text = file_system_.ReadFile(QueueFile(root_, chat_), kMaxRecordBytes);
    if (!text && IsNotFound(text.error())) return;
    ++report_.checked;
    if (const auto queue = files_.ReadQueue(chat_); !queue) Add(ProblemOf(QueueName(chat_), queue.error()));
  }

  void CheckBlob(const std::string& name) {
    const RecordPlace place{.chat = chat_, .blob = name};
    const auto text = ReadRecordText(file_system_, BlobPath(root_, chat_, name), place);
    if (!text && IsNotFound(text.error())) return;  // deleted meanwhile
    ++report_.checked;
    const auto checked =
        text.and_then([&](const std::string& content) { return format_->Open(place, content); })
            .and_then([&](const OpenedRecord& record) { return CheckBlobRecord(place, record.plaintext); });
    if (!checked) Add(ProblemOf(BlobRecordName(chat_, name), checked.error()));
  }

  Result<void> CheckFile(const FileId& id) {
    const RecordPlace place{.chat = chat_, .file = id};
    const auto text = ReadRecordText(file_system_, FilePath(root_, chat_, id), place);
    if (!text && IsNotFound(text.error())) return {};  // deleted meanwhile
    ++report_.checked;
    const auto checked =
        text.and_then([&](const std::string& content) { return OpenFileEntry(*format_, place, content); })
            .and_then([&](const FileEntry& entry) -> Result<void> {
              const auto* const reference = std::get_if<FileReference>(&entry);
              if (reference == nullptr) return {};
              return FetchFile(*format_, place, *reference, bucket_).map([](const FetchedFile&) {});
            });
    if (checked) return {};
    if (EndsCheck(checked.error())) return checked;
    Add(ProblemOf(FileRecordName(chat_, id), checked.error()));
    return {};
  }

  // Compares the files with each other.
  void CheckHistory() {
    for (const auto& [id, error] : CompareRecords(chat_, index_ ? &*index_ : nullptr, found_, files_.authenticated())) {
      Add(ProblemOf(RecordName(chat_, id), error));
    }
  }

  const std::string& root_;
  const ChatId chat_;
  const std::shared_ptr<const KeySet> keys_;
  FileSystem& file_system_;
  WorkCounter* const counter_;
  const FileBucket* const bucket_;
  const std::unique_ptr<RecordFormat> format_;
  const ChatFiles files_;

  VerifyReport report_;
  std::map<std::string, Problem> problems_;  // by file
  std::optional<ChatIndex> index_;
  bool has_index_ = false;  // readable or not
  bool index_cut_off_ = false;
  std::optional<Problem> index_problem_;
  std::map<InteractionId, FoundRecord> found_;
};

// A chat may be deleted and replaced while its files are checked, so only problems that a second check also finds
// count. The counter counts the first check only.
Result<VerifyReport> CheckTwice(const std::string& root, const ChatId& chat, const std::shared_ptr<const KeySet>& keys,
                                FileSystem& file_system, WorkCounter* counter, const FileBucket* bucket) {
  const auto first = ChatCheck(root, chat, keys, file_system, counter, bucket).Run();
  if (!first || first->problems.empty()) return first;
  auto second = TRY(ChatCheck(root, chat, keys, file_system, nullptr, bucket).Run());
  std::erase_if(second.problems, [&](const Problem& problem) {
    return std::ranges::find(first->problems, problem) == first->problems.end();
  });
  return second;
}

// --- a file that lies anywhere ---------------------------------------------------------------------------------------

Error NotOurs() {
  return Refused(Reason::kIntegrityAuth, "it is neither a record nor a journal, or too damaged to tell");
}

// The place that a record claims.
std::optional<RecordPlace> ClaimedPlace(const Json& header, const char* chat_member, const char* interaction_member) {
  const auto text = [&](const char* name) {
    const auto member = header.find(name);
    return member != header.end() && member->is_string() ? member->get<std::string>() : std::string();
  };
  const auto chat = ChatId::Parse(text(chat_member));
  if (!chat) return std::nullopt;
  if (const auto file = FileId::Parse(text("file_id"))) return RecordPlace{.chat = *chat, .file = *file};
  if (header.contains("blob")) return RecordPlace{.chat = *chat, .blob = text("blob")};
  if (!header.contains(interaction_member)) return RecordPlace{.chat = *chat, .interaction = std::nullopt};
  const auto interaction = InteractionId::Parse(text(interaction_member));
  if (!interaction) return std::nullopt;
  return RecordPlace{.chat = *chat, .interaction = *interaction};
}

Result<void> CheckRecord(std::string_view text, std::shared_ptr<const KeySet> keys) {
  const bool sealed = LooksLikeJwe(text);
  const auto json = sealed ? ReadJweHeader(text) : ParseJson(text, 2 * kMaxJsonDepth);
  if (!json || !json->is_object()) return Fail(NotOurs());
  const bool is_chat = !sealed && json->contains("leaves");
  std::optional<RecordPlace> of_file;
  if (auto claimed = PlaceOfFile(text); claimed && !sealed) of_file = *std::move(claimed);
  const auto place = of_file   ? of_file
                     : sealed  ? ClaimedPlace(*json, "chat_id", "interaction_id")
                     : is_chat ? ClaimedPlace(*json, "id", "interaction_id")
                               : ClaimedPlace(*json, "chat_id", "id");
  if (!place) return Fail(NotOurs());
  const auto record = TRY(MakeRecordFormat(std::move(keys))->Open(*place, text));
  if (place->file) return FileEntryFromJson(*place, record.plaintext).map([](const FileEntry&) {});
  if (!place->blob.empty()) return CheckBlobRecord(*place, record.plaintext).map([](const std::string&) {});
  if (!place->interaction) return ChatIndexFromJson(place->chat, record.plaintext).map([](const ChatIndex&) {});
  const auto content = ParseJson(record.plaintext, 2 * kMaxJsonDepth);
  if (!content) return Fail(IntegrityError("auth", *place, "its content is not JSON"));
  const auto interaction = InteractionFromJson(*content);
  if (!interaction) {
    const bool version = interaction.error().Is(Reason::kIntegrityVersion);
    return Fail(IntegrityError(version ? "version" : "auth", *place, interaction.error().message));
  }
  if (interaction->chat_id != place->chat || interaction->id != *place->interaction) {
    return Fail(IntegrityError("swap", *place, "its content belongs to another place"));
  }
  return {};
}

Result<VerifyReport> VerifyLoneFile(const std::string& path, std::shared_ptr<const KeySet> keys,
                                    FileSystem& file_system) {
  const auto text = file_system.ReadFile(path, kMaxRecordBytes);
  if (!text && IsNotFound(text.error())) return Fail(text.error());
  VerifyReport report{.checked = 1, .problems = {}};
  if (!text) {
    report.problems.push_back(ProblemOf(path, text.error()));
    return report;
  }
  const std::string_view first_line = std::string_view(*text).substr(0, text->find('\n'));
  if (const auto place = JournalCipher::ClaimedPlace(first_line)) {
    if (auto problem = JournalProblem(path, *text, *place, keys.get())) report.problems.push_back(*std::move(problem));
  } else if (const auto checked = CheckRecord(*text, std::move(keys)); !checked) {
    report.problems.push_back(ProblemOf(path, checked.error()));
  }
  return report;
}

void VerifyGrants(const std::string& root, const KeySet* keys, FileSystem& file_system, VerifyReport& report) {
  const auto is_gone = [&](const std::string& path) {
    const auto there = file_system.ReadFile(path, kMaxRecordBytes);
    return !there && IsNotFound(there.error());
  };
  if (is_gone(GrantsFile(root)) && is_gone(GrantsHeadFile(root))) return;
  ++report.checked;
  auto grants = ReadGrantFile(file_system, root, keys);
  // A server may have changed one of the two meanwhile.
  if (!grants) grants = ReadGrantFile(file_system, root, keys);
  if (grants) return;
  const Error& error = grants.error();
  const bool of_head = error.detail == GrantsHeadFile("").substr(1);
  report.problems.push_back(ProblemOf((of_head ? GrantsHeadFile("") : GrantsFile("")).substr(1), error));
}

// Reports symbolic links in the place of folders of the data folder, because they are not followed.
void VerifyFolders(const std::string& root, FileSystem& file_system, VerifyReport& report) {
  const auto entries = file_system.ListDirectory(root);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory || !IsFolderName(entry.name)) continue;
    const auto below = file_system.ListDirectory(root + "/" + entry.name);
    if (below || below.error().code != ErrorCode::kCorruption) continue;
    report.problems.push_back(ProblemOf(entry.name, below.error()));
  }
}

std::string NameOf(const PlaceInStore& place) {
  if (place.kind == PlaceInStore::Kind::kQueue) return QueueName(place.chat);
  if (place.file) return FileRecordName(place.chat, *place.file);
  return place.kind == PlaceInStore::Kind::kJournal ? JournalName(place.chat, *place.interaction)
                                                    : RecordName(place.chat, place.interaction);
}

}  // namespace

Result<VerifyReport> VerifyStore(const std::string& root, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                                 WorkCounter* counter, const FileBucket* bucket) {
  auto chats = TRY(ChatFiles(root, MakeRecordFormat(keys), file_system).ListChats());
  std::ranges::sort(chats);
  VerifyReport report;
  for (const ChatId& chat : chats) {
    auto one = CheckTwice(root, chat, keys, file_system, counter, bucket);
    if (!one && IsNotFound(one.error())) continue;  // empty, or deleted meanwhile
    if (!one && EndsCheck(one.error())) return one;
    if (!one) {
      report.problems.push_back(ProblemOf(chat.str(), one.error()));
      continue;
    }
    report.checked += one->checked;
    std::move(one->problems.begin(), one->problems.end(), std::back_inserter(report.problems));
  }
  VerifyFolders(root, file_system, report);
  VerifyGrants(root, keys.get(), file_system, report);
  VerifyAudit(root, keys.get(), file_system, report);
  return report;
}

Result<VerifyReport> VerifyChat(const std::string& root, const ChatId& chat, std::shared_ptr<const KeySet> keys,
                                FileSystem& file_system, WorkCounter* counter, const FileBucket* bucket) {
  return CheckTwice(root, chat, keys, file_system, counter, bucket);
}

Result<VerifyReport> VerifyFile(const std::string& path, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                                WorkCounter* counter, const FileBucket* bucket) {
  if (IsGrantsFile(path)) {
    VerifyReport report;
    VerifyGrants(ParentDirectory(path), keys.get(), file_system, report);
    if (report.checked == 0) return Fail(ErrorCode::kNotFound, "there is no file " + path);
    return report;
  }
  const auto place = ParseStorePath(path);
  if (!place || place->kind == PlaceInStore::Kind::kChatDirectory) {
    return VerifyLoneFile(path, std::move(keys), file_system);
  }
  const auto text = file_system.ReadFile(path, kMaxRecordBytes);
  const bool there = text || !IsNotFound(text.error());
  auto report = TRY(CheckTwice(place->root, place->chat, std::move(keys), file_system, counter, bucket));
  const std::string name = NameOf(*place);
  std::erase_if(report.problems, [&](const Problem& problem) { return problem.file != name; });
  if (!there && report.problems.empty()) return Fail(ErrorCode::kNotFound, "there is no file " + path);
  report.checked = there ? 1 : 0;
  return report;
}

}  // namespace reprise
