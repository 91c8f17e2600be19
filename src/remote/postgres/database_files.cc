#include "remote/postgres/database_files.h"

#include <map>
#include <optional>
#include <utility>

#include "base/atomic_write.h"
#include "base/try.h"
#include "store/chat_files.h"
#include "store/file_names.h"

namespace reprise {
namespace {

tl::unexpected<Error> NoSuchFile(const std::string& path) { return Fail(ErrorCode::kNotFound, "no such file", path); }

tl::unexpected<Error> NotHere(const std::string& path) {
  return Fail(ErrorCode::kForbidden, "this is not written as a file", path);
}

std::string NameIn(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Blobs are rows beside the chat's files, whose ids have another beginning.
constexpr std::string_view kBlobPrefix = "blob_";

}  // namespace

const std::string DatabaseFiles::kRoot = "/database";

// The meaning of a path.
struct DatabaseFiles::Place {
  enum class Kind {
    kRoot,
    kChat,
    kInteractions,
    kFiles,
    kBlobs,
    kTrash,
    kTrashEntry,
    kTrashFolder,  // folders
    kIndex,
    kQueue,
    kCheckpoint,
    kJournal,
    kFile,
    kFolderFile,
    kAuditLog,
    kTrashFile,  // files
  };
  Kind kind = Kind::kFolderFile;
  std::string chat{};
  std::int64_t number = 0;  // of a checkpoint or a journal
  std::string name{};       // of a file; in the trash: the entry and the path, with a slash between them
};

DatabaseFiles::Place DatabaseFiles::PlaceOf(const std::string& path) {
  if (path == kRoot) return {.kind = Place::Kind::kRoot};
  if (path == AuditLogFile(kRoot)) return {.kind = Place::Kind::kAuditLog};
  const std::string trash = TrashDirectory(kRoot);
  if (path == trash) return {.kind = Place::Kind::kTrash};
  if (path.starts_with(trash + "/")) {
    std::string name = path.substr(trash.size() + 1);
    const bool is_entry = name.find('/') == std::string::npos;
    const bool is_folder = !name.ends_with(".json");
    return {.kind = is_entry    ? Place::Kind::kTrashEntry
                    : is_folder ? Place::Kind::kTrashFolder
                                : Place::Kind::kTrashFile,
            .name = std::move(name)};
  }
  const auto in_store = ParseStorePath(path);
  if (in_store && in_store->root == kRoot) {
    using In = PlaceInStore::Kind;
    static const std::map<In, Place::Kind> kKinds = {
        {In::kChatDirectory, Place::Kind::kChat}, {In::kChatFile, Place::Kind::kIndex},
        {In::kQueue, Place::Kind::kQueue},        {In::kCheckpoint, Place::Kind::kCheckpoint},
        {In::kJournal, Place::Kind::kJournal},    {In::kFile, Place::Kind::kFile},
        {In::kBlob, Place::Kind::kFile}};
    Place place{.kind = kKinds.at(in_store->kind), .chat = in_store->chat.str()};
    if (in_store->interaction) place.number = in_store->interaction->number();
    if (in_store->file) place.name = in_store->file->str();
    if (!in_store->blob.empty()) place.name = std::string(kBlobPrefix) + in_store->blob;
    return place;
  }
  const std::string parent = ParentDirectory(path);
  if (const auto chat = ParentDirectory(parent) == kRoot ? ParseChatDirectory(NameIn(parent)) : std::nullopt) {
    if (path == InteractionsDirectory(kRoot, *chat)) return {.kind = Place::Kind::kInteractions, .chat = chat->str()};
    if (path == BlobsDirectory(kRoot, *chat)) return {.kind = Place::Kind::kBlobs, .chat = chat->str()};
    if (path == FilesDirectory(kRoot, *chat)) return {.kind = Place::Kind::kFiles, .chat = chat->str()};
  }
  return {.kind = Place::Kind::kFolderFile, .name = path.substr(std::min(path.size(), kRoot.size() + 1))};
}

Result<Rows> DatabaseFiles::Read(const Place& place) {
  switch (place.kind) {
    case Place::Kind::kIndex:
      return database_.Execute({.sql = "select index_record from reprise.chats where tenant = $1 and id = $2 and "
                                       "index_record is not null",
                                .values = {tenant_, place.chat}});
    case Place::Kind::kQueue:
      return database_.Execute(
          {.sql = "select record from reprise.queue where tenant = $1 and chat = $2 union all (select record from "
                  "reprise.queued where tenant = $1 and chat = $2 and taken is null order by place)",
           .values = {tenant_, place.chat}});
    case Place::Kind::kCheckpoint:
      return database_.Execute(
          {.sql = "select record from reprise.interactions where tenant = $1 and chat = $2 and number = $3::int",
           .values = {tenant_, place.chat, place.number}});
    case Place::Kind::kJournal:
      return database_.Execute(
          {.sql =
               "select record from reprise.journal j where tenant = $1 and chat = $2 and number = $3::int and epoch = "
               "(select max(epoch) from reprise.journal n where n.tenant = $1 and n.chat = $2 and n.number = $3::int) "
               "order by position",
           .values = {tenant_, place.chat, place.number}});
    case Place::Kind::kFile:
      return database_.Execute({.sql = "select record from reprise.files where tenant = $1 and chat = $2 and id = $3",
                                .values = {tenant_, place.chat, place.name}});
    case Place::Kind::kFolderFile:
      return database_.Execute({.sql = "select content from reprise.folder_files where tenant = $1 and name = $2",
                                .values = {tenant_, place.name}});
    case Place::Kind::kAuditLog:
      return database_.Execute(
          {.sql = "select line || E'\\n' from reprise.audit where tenant = $1 order by seq", .values = {tenant_}});
    case Place::Kind::kTrashFile:
      return database_.Execute(
          {.sql = "select content from reprise.trash where tenant = $1 and entry || '/' || path = $2 and entry = "
                  "split_part($2, '/', 1)",
           .values = {tenant_, place.name}});
    default:
      return Rows();
  }
}

Result<std::string> DatabaseFiles::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  const Place place = PlaceOf(path);
  const Rows rows = TRY(Read(place));
  if (rows.empty()) return NoSuchFile(path);
  std::string content;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (row > 0 && place.kind == Place::Kind::kQueue) content += ChatFiles::kQueueRecordEnd;
    content += rows.text(row, 0);
  }
  if (content.size() > max_bytes) return Fail(ErrorCode::kTooLarge, "the file is too large", path);
  return content;
}

Result<std::vector<DirectoryEntry>> DatabaseFiles::ListDirectory(const std::string& path) {
  const Place place = PlaceOf(path);
  std::vector<DirectoryEntry> entries;
  const auto add = [&](const Rows& rows, bool is_directory, std::string_view suffix) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      entries.push_back({.name = std::string(rows.text(row, 0)).append(suffix), .is_directory = is_directory});
    }
  };
  switch (place.kind) {
    case Place::Kind::kRoot:
      add(TRY(database_.Execute({.sql = kListChats, .values = {tenant_}})), true, "");
      add(TRY(database_.Execute(
              {.sql = "select name from reprise.folder_files where tenant = $1", .values = {tenant_}})),
          false, "");
      if (const Rows audit = TRY(
              database_.Execute({.sql = "select 1 from reprise.audit where tenant = $1 limit 1", .values = {tenant_}}));
          !audit.empty()) {
        entries.push_back({.name = NameIn(AuditLogFile(kRoot))});
      }
      return entries;
    case Place::Kind::kInteractions: {
      const Rows rows = TRY(database_.Execute(
          {.sql = "select number, false from reprise.interactions where tenant = $1 and chat = $2 union all "
                  "select distinct number, true from reprise.journal j where tenant = $1 and chat = $2 and not exists "
                  "(select 1 from reprise.interactions i where i.tenant = $1 and i.chat = $2 and i.number = j.number)",
           .values = {tenant_, place.chat}}));
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto id = InteractionId::FromNumber(static_cast<std::uint32_t>(rows.number(row, 0)));
        const auto chat = TRY(ChatId::Parse(place.chat));
        const std::string file = rows.truth(row, 1) ? JournalPath(kRoot, chat, id) : InteractionFile(kRoot, chat, id);
        entries.push_back({.name = NameIn(file)});
      }
      break;
    }
    case Place::Kind::kFiles:
      add(TRY(database_.Execute(
              {.sql = "select id from reprise.files where tenant = $1 and chat = $2 and id not like 'blob%'",
               .values = {tenant_, place.chat}})),
          false, ".json");
      break;
    case Place::Kind::kBlobs:
      add(TRY(database_.Execute({.sql =
                                     "select substr(id, 6) from reprise.files where tenant = $1 and chat = $2 and id "
                                     "like 'blob%'",
                                 .values = {tenant_, place.chat}})),
          false, ".json");
      break;
    case Place::Kind::kTrash:
      add(TRY(database_.Execute(
              {.sql = "select distinct entry from reprise.trash where tenant = $1", .values = {tenant_}})),
          true, "");
      break;
    case Place::Kind::kTrashEntry:
      add(TRY(database_.Execute({.sql = "select path from reprise.trash where tenant = $1 and entry = $2",
                                 .values = {tenant_, place.name}})),
          false, "");
      break;
    default:
      break;
  }
  if (entries.empty()) return NoSuchFile(path);
  return entries;
}

class DatabaseFiles::Written final : public WritableFile {
 public:
  explicit Written(std::shared_ptr<std::string> content) : content_(std::move(content)) {}
  Result<void> Append(std::string_view data) override {
    content_->append(data);
    return {};
  }
  Result<void> Sync() override { return {}; }  // Rename makes it durable
  Result<void> Close() override { return {}; }

 private:
  const std::shared_ptr<std::string> content_;
};

Result<std::unique_ptr<WritableFile>> DatabaseFiles::CreateFile(const std::string& path) {
  if (!IsTemporaryName(NameIn(path))) return NotHere(path);
  const MutexLock lock(mutex_);
  const auto [place, is_new] = written_.try_emplace(path, std::make_shared<std::string>());
  if (!is_new) return Fail(ErrorCode::kConflict, "the file is there already", path);
  return std::make_unique<Written>(place->second);
}

Result<void> DatabaseFiles::Rename(const std::string& from, const std::string& to) {
  std::shared_ptr<std::string> content;
  {
    const MutexLock lock(mutex_);
    const auto found = written_.find(from);
    if (found == written_.end()) return NotHere(from);
    content = std::move(found->second);
    written_.erase(found);
  }
  const Place place = PlaceOf(to);
  if (place.kind == Place::Kind::kFile) {
    TRY(database_.Execute({.sql = "insert into reprise.files(tenant, chat, id, record) values ($1, $2, $3, $4) "
                                  "on conflict (tenant, chat, id) do update set record = excluded.record",
                           .values = {tenant_, place.chat, place.name, SqlValue::Bytes(*content)}}));
    return {};
  }
  if (place.kind != Place::Kind::kFolderFile) return NotHere(to);
  // All instances use the object prefix that the first of them has made.
  const bool is_made_once = to == BucketFile(kRoot);
  TRY(database_.Execute({.sql = is_made_once
                                    ? "insert into reprise.folder_files(tenant, name, content) values ($1, $2, $3) "
                                      "on conflict (tenant, name) do nothing"
                                    : "insert into reprise.folder_files(tenant, name, content) values ($1, $2, $3) "
                                      "on conflict (tenant, name) do update set content = excluded.content",
                         .values = {tenant_, place.name, SqlValue::Bytes(*content)}}));
  return {};
}

Result<void> DatabaseFiles::RemoveFile(const std::string& path) {
  {
    const MutexLock lock(mutex_);
    if (written_.erase(path) > 0) return {};
  }
  const Place place = PlaceOf(path);
  if (place.kind != Place::Kind::kFile && place.kind != Place::Kind::kFolderFile) return NotHere(path);
  const bool in_chat = place.kind == Place::Kind::kFile;
  const Rows removed = TRY(database_.Execute(
      in_chat ? Statement{.sql = "delete from reprise.files where tenant = $1 and chat = $2 and id = $3 returning 1",
                          .values = {tenant_, place.chat, place.name}}
              : Statement{.sql = "delete from reprise.folder_files where tenant = $1 and name = $2 returning 1",
                          .values = {tenant_, place.name}}));
  if (removed.empty()) return NoSuchFile(path);
  return {};
}

// Folders come and go with their files.
Result<bool> DatabaseFiles::CreateDirectory(const std::string&) { return false; }
Result<void> DatabaseFiles::SyncDirectory(const std::string&) { return {}; }

namespace {

constexpr const char* kSingleUser = "";  // the tenant whose chats are sealed by the operator's keys

// Chats, the first turns of chats that have no index yet, and the keys of organizations. The chats of users are sealed
// by the key of their organization, so that they only show whether they are sealed.
constexpr const char* kSample =
    "(select 'operator', index_record from reprise.chats where tenant = '' and index_record is not null limit 64) "
    "union all "
    "(select 'operator', record from reprise.journal where tenant = '' and position = 0 limit 16) union all "
    "(select 'operator', record from reprise.org_keys limit 64) union all "
    "(select 'user', index_record from reprise.chats where tenant <> '' and index_record is not null limit 16)";

}  // namespace

Result<FolderKeys> ReadDatabaseKeys(Database& database, const KeySet* keys) {
  DatabaseFiles files(database, kSingleUser);
  FolderKeys found;
  found.looked = true;
  found.given_up = GivenUpKeys(DatabaseFiles::kRoot, files);
  const Rows rows = TRY(TenantDatabase(database, TenantDatabase::kAll).Execute({.sql = kSample}));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto by = SealedBy(rows.text(row, 1));
    if (!by) continue;
    if (rows.text(row, 0) == "user") {
      ++(by->empty() ? found.plain_chats : found.sealed_chats);
    } else {
      CountChat(found, *by, keys);
    }
  }
  return found;
}

Result<void> CheckDatabaseKeys(const FolderKeys& found, FolderMode mode, const std::string& key_file) {
  if (mode == FolderMode::kPlain) {
    if (found.sealed_chats == 0 || found.plain_chats > 0) return {};
    return Fail(Reason::kSealedDatabase, "the chats in the database are sealed: leave --plain out");
  }
  if (found.plain_chats > 0 && found.sealed_chats == 0) {
    return Fail(Reason::kPlainDatabase, "the chats in the database are stored unencrypted: give --plain");
  }
  if (found.missing.empty()) return {};
  std::string kids;
  for (const auto& [kid, count] : found.missing) kids += (kids.empty() ? "" : ", ") + kid;
  return Fail(Reason::kMissingKey, "chats in the database are sealed with " + kids + ", which is not in " + key_file +
                                       ": put the key file back (or name it with --key-file), or give those chats up " +
                                       "with `reprise serve --new-key`");
}

Result<void> NoteGivenUpKeys(const FolderKeys& found, Database& database, const KeySet& keys) {
  if (found.missing.empty()) return {};
  DatabaseFiles files(database, kSingleUser);
  return NoteFolderKeys(found, DatabaseFiles::kRoot, &keys, files);
}

}  // namespace reprise
