#include "client/archive/chat_reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "app/folders.h"
#include "app/keys.h"
#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/posix_file_system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "engine/run_journal.h"
#include "remote/postgres/schema.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/file_interaction_store.h"
#include "store/file_journal.h"
#include "store/file_names.h"
#include "store/linked_state.h"
#include "store/record.h"
#include "store/sealed_file_store.h"
#include "terminal/console.h"

namespace reprise {

Result<ChatSource> ChatSource::Open(const Options& options) {
  if (options.store.type == StoreOptions::Type::kFiles) return ChatSource(options.data_dir);
  ChatSource source(DatabaseFiles::kRoot);
  source.database_ = TRY(Database::Open({.url = options.store.url}));
  TRY(CheckSchema(*source.database_));
  source.files_ = std::make_unique<DatabaseFiles>(*source.database_, /*tenant=*/"");
  return source;
}

Result<std::vector<ChatSource::OfUser>> ChatSource::OfUsers(const KeySet* operators) const {
  std::vector<OfUser> all;
  if (!database_) return all;
  const Rows rows =
      TRY(TenantDatabase(*database_, TenantDatabase::kAll)
              .Execute({.sql = "select t.tenant, t.org, t.name, k.record from reprise.tenants t left join "
                               "reprise.org_keys k on k.org = t.org order by t.org, t.name",
                        .values = {}}));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Principal user{
        .role = Principal::Role::kUser, .org = std::string(rows.text(row, 1)), .user = std::string(rows.text(row, 2))};
    Result<std::shared_ptr<const KeySet>> keys = std::shared_ptr<const KeySet>();
    if (operators && rows.is_null(row, 3)) {
      keys = std::make_shared<const KeySet>(operators->BoundTo(TenantOf(user)));
    } else if (operators) {
      keys = KeysOfTenant(*operators, user, rows.text(row, 3));
    }
    all.push_back({std::move(user), std::make_unique<DatabaseFiles>(*database_, std::string(rows.text(row, 0))),
                   std::move(keys)});
  }
  return all;
}

FileSystem& ChatSource::file_system() const { return files_ ? static_cast<FileSystem&>(*files_) : Disk(); }

Error NoDataFolder(const std::string& data_dir) {
  return MakeError(ErrorCode::kNotFound, "there is no data folder " + FullPath(data_dir) +
                                             " (--data-dir names another one, `reprise serve` makes one)");
}

Error ChatIsDamaged(const ChatId& chat) {
  return MakeError(ErrorCode::kCorruption, "the chat is damaged (`reprise verify " + chat.str() + "` says where)");
}

Error NothingFinished(const ChatId& chat) {
  return MakeError(ErrorCode::kNotFound, "the chat " + chat.str() + " has no finished interaction yet");
}

Error NotThere(Error error, const RecordReference& what, const std::string& data_dir) {
  if (error.code != ErrorCode::kNotFound) return error;
  const std::string chat = what.chat.str();
  if (what.interaction && IsDirectory(data_dir + "/" + chat)) {
    error.message = "there is no " + chat + "/" + what.interaction->str() + " in " + FullPath(data_dir) +
                    " (`reprise ls " + chat +
                    " --all` lists its interactions); one that runs is there when it has ended";
    return error;
  }
  std::vector<std::string> known;
  if (const auto chats = ChatFiles(data_dir, MakeRecordFormat(nullptr), Disk()).ListChats()) {
    for (const ChatId& other : *chats) known.push_back(other.str());
    std::ranges::sort(known);
  }
  if (!what.interaction && std::ranges::binary_search(known, chat)) {
    return NothingFinished(what.chat);
  }
  return NoSuchChat(what.chat, {.has = {}, .all = {}, .where = "in " + FullPath(data_dir)}, known);
}

Result<ChatReader> ChatReader::Open(const Flags& flags, const Environment& environment, WorkCounter* reads) {
  auto options = TRY(LoadOptions(flags, environment));
  SetLogLevel(LogLevel::kError);  // the store's warnings are for a server's log
  auto keys = TRY(KeysFor(options));
  auto source = TRY(ChatSource::Open(options));
  auto store = FileInteractionStore::Open({.root = source.root(),
                                           .keys = keys,
                                           .file_system = source.file_system(),
                                           .access = FileInteractionStore::Access::kReadOnly,
                                           .reads = reads});
  if (!store && store.error().code == ErrorCode::kNotFound) {
    return Fail(NoDataFolder(options.data_dir));
  }
  if (!store) return Fail(store.error());
  auto bucket = ChatBucket::OpenToRead(options, reads ? reads->stop_token() : std::stop_token());
  auto files = std::make_unique<SealedFileStore>(SealedFileStore::Options{
      .root = source.root(), .keys = keys, .file_system = source.file_system(), .bucket = FilesOf(bucket)});
  auto blobs = std::make_unique<FileBlobStore>(source.root(), keys, source.file_system());
  return ChatReader(std::move(options), std::move(bucket), std::move(source), *std::move(store), std::move(files),
                    std::move(blobs));
}

Result<std::vector<ChatId>> ChatReader::AllChats() const {
  // Reads only names, so the record format does not matter.
  auto chats = ChatFiles(source_.root(), MakeRecordFormat(nullptr), source_.file_system()).ListChats();
  if (chats) std::ranges::sort(*chats);
  return chats;
}

Result<std::optional<StoredRecord>> FindStored(const std::string& text, const Flags& flags,
                                               const Environment& environment) {
  const auto exact = ParseReference(text);
  const bool is_file = IsFile(text);
  if (is_file && !exact) return std::nullopt;
  auto reader = ChatReader::Open(flags, environment);
  if (!reader && (is_file || !exact)) return std::nullopt;
  if (!reader) return Fail(std::move(reader.error()));
  if (is_file && !TRY(reader->names().has(exact->chat))) return std::nullopt;
  const auto what = FindRecord(text, reader->names());
  if (!what && what.error().code == ErrorCode::kInvalidArgument) return std::nullopt;
  if (!what) return Fail(what.error());
  return StoredRecord{*std::move(reader), *what};
}

void ComplainOfDamage(const Chat& chat) {
  for (const DamagedInteraction& damaged : chat.damaged) Complain(damaged.error);
}

std::set<InteractionId> HeadBranch(const Chat& chat) {
  std::map<InteractionId, std::optional<InteractionId>> parents;
  for (const Interaction& interaction : chat.interactions) parents[interaction.id] = interaction.parent_id;
  std::set<InteractionId> branch;
  for (auto id = chat.summary.head; id && branch.insert(*id).second;) {
    const auto parent = parents.find(*id);
    id = parent == parents.end() ? std::nullopt : parent->second;  // beyond a damaged one the branch is unknown
  }
  return branch;
}

Json ChatToJson(const Chat& chat, bool all_branches) {
  const auto branch = HeadBranch(chat);
  Json json = ToJson(chat.summary);
  Json& interactions = json["interactions"] = Json::array();
  for (const Interaction& interaction : chat.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (superseded && !all_branches) continue;
    interactions.push_back(ToJson(interaction));
    if (all_branches) interactions.back()["superseded"] = superseded;
  }
  for (const DamagedInteraction& damaged : chat.damaged) {
    json["damaged"].push_back(ToJson(damaged));
  }
  return json;
}

StoredCount CountStored(const std::string& data_dir, std::span<const ChatId> chats) {
  const ChatFiles stored(data_dir, MakeRecordFormat(nullptr), Disk());
  StoredCount count{.chats = chats.size()};
  for (const ChatId& chat : chats) {
    if (const auto listed = stored.ListInteractions(chat)) {
      count.interactions += listed->checkpoints.size();
      count.journals += listed->journals.size();
    }
    if (const auto files = ListFileIds(data_dir, chat, Disk())) count.files += files->size();
    if (const auto blobs = ListBlobNames(data_dir, chat, Disk())) count.files += blobs->size();
  }
  return count;
}

std::uint64_t CountFilesBelow(const std::string& folder) {
  using std::filesystem::recursive_directory_iterator;
  std::uint64_t count = 0;
  std::error_code failed;
  for (recursive_directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code gone;
    if (std::filesystem::is_regular_file(entry->symlink_status(gone))) ++count;
  }
  return count;
}

namespace {

Error KeyNeeded(const std::string& path) {
  return Refused(Reason::kKeyNeeded, "the file is sealed and there is no key file", path);
}

// Null for a plain file, which must not cost a passphrase, and if there is no key file.
Result<std::shared_ptr<const KeySet>> KeysIfSealed(std::string_view text, const Options& options) {
  if (!LooksLikeJwe(text)) return nullptr;
  auto keys = LoadKeyFile(KeyFileOf(options), Disk(), PassphraseFrom(options));
  if (keys) return std::make_shared<const KeySet>(*std::move(keys));
  if (keys.error().code == ErrorCode::kNotFound) return nullptr;
  return Fail(std::move(keys.error()));
}

// An interaction in its folder, with the earlier states that its own continues.
Result<std::string> ReadWhole(const PlaceInStore& place, std::shared_ptr<const KeySet> keys) {
  auto store = TRY(FileInteractionStore::Open({.root = place.root,
                                               .keys = std::move(keys),
                                               .file_system = Disk(),
                                               .access = FileInteractionStore::Access::kReadOnly}));
  return store->LoadInteraction(place.chat, *place.interaction).map([](const Interaction& interaction) {
    return DumpJson(ToJson(interaction));
  });
}

Result<LoneFile> ReadJournal(const std::string& path, std::string_view text, const RecordPlace& place,
                             const KeySet* keys) {
  const bool sealed = LooksLikeJwe(text.substr(0, text.find('\n')));
  if (sealed && keys == nullptr) return Fail(KeyNeeded(path));
  const auto content = TRY(ReadJournalText(text, place, sealed ? keys : nullptr));
  LoneFile file{.text = {}, .cut_off = content.cut_off};
  for (const std::string& record : content.records) {
    auto lines = TRY(JournalRecordAsJson(record));
    file.text += lines;
  }
  return file;
}

// A server's own or unfinished file need not be JSON, so it is shown as a JSON string.
bool IsServersOwn(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string name = file.filename().string();
  return name == ".running" || name == ".lock" || IsTemporaryName(name);
}

}  // namespace

Result<LoneFile> ReadLoneFile(const std::string& path, const Options& options) {
  const auto text = Disk().ReadFile(path, kMaxRecordBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "there is no file " + path);
  }
  if (!text) return Fail(text.error());
  if (IsServersOwn(path)) return LoneFile{.text = DumpJson(Json(ToValidUtf8(*text))) + "\n"};
  const std::string_view first_line = std::string_view(*text).substr(0, text->find('\n'));
  const auto keys = TRY(KeysIfSealed(first_line, options));
  if (const auto place = JournalCipher::ClaimedPlace(first_line)) return ReadJournal(path, *text, *place, keys.get());
  auto record = TRY(ReadRecordFile(path, keys.get(), Disk()));
  LoneFile file{.text = std::move(record.plaintext)};
  file.is_part = HasLinkedState(file.text);
  const auto place = ParseStorePath(path);
  if (file.is_part && place && place->kind == PlaceInStore::Kind::kCheckpoint) {
    auto whole = TRY(ReadWhole(*place, keys));
    file = LoneFile{.text = std::move(whole)};
  }
  if (!file.text.ends_with('\n')) file.text += '\n';
  return file;
}

Result<Interaction> ReadLoneInteraction(const std::string& path, const Options& options) {
  const auto file = TRY(ReadLoneFile(path, options));
  auto interaction =
      ParseJson(file.text, 2 * kMaxJsonDepth).and_then([](const Json& json) { return InteractionFromJson(json); });
  if (interaction) return interaction;
  return Fail(ErrorCode::kInvalidArgument, path + " is not a finished interaction (`reprise cat` prints what it is)");
}

}  // namespace reprise
