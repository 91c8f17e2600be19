#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/keys.h"
#include "app/options.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/readable_size.h"
#include "client/archive/chat_names.h"
#include "client/archive/chat_reader.h"
#include "client/server_access.h"
#include "domain/codec.h"
#include "domain/transcript/transcript.h"
#include "doors/api/requests.h"
#include "doors/chat_lists.h"
#include "reprise/ids.h"
#include "reprise/result.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
#include "store/unsaved.h"
#include "terminal/console.h"

namespace reprise {
namespace {

// Changes stored chats: through the server that uses their folder (client/server_access), or, if there is none, in the
// folder itself, whose lock it holds. Returns the JSON of the HTTP interface. For one thread.
//
// In a folder, functions fail as the store does; through a server with kUnavailable, and the server's code as `reason`.
// A missing chat or interaction is kNotFound in both, with a message that names it and the place.
class ChatWriter {
 public:
  virtual ~ChatWriter() = default;

  virtual Result<void> Delete(const ChatId& chat) = 0;            // ends its run and moves it to the trash
  virtual Result<Json> ListTrash() = 0;                           // schemas/trash
  virtual Result<Json> Restore(const std::string& trash_id) = 0;  // schemas/chat_summary
  virtual Result<Json> Rename(const ChatId& chat, const std::string& title) = 0;  // schemas/chat_summary
  // Copies the branch up to `interaction` (default: the head) to chat `as` (empty: a new id). Gives a chat_list_entry.
  virtual Result<Json> Fork(const ChatId& chat, std::optional<InteractionId> interaction, const std::string& as) = 0;
  virtual ChatNames names() = 0;  // must not outlive this
  // The place of the chats, for messages: the server's URL or the folder.
  virtual std::string where() const = 0;
};

Error NothingToFork(const ChatId& chat) {
  return Refused(Reason::kEmptyChat, "the chat " + chat.str() + " has no interaction yet: there is nothing to fork");
}

Json ForkRequest(InteractionId interaction, const std::string& as) {
  Json body = {{"interaction_id", interaction.str()}};
  if (!as.empty()) body["chat_id"] = as;
  return body;
}

class ServedChats final : public ChatWriter {
 public:
  explicit ServedChats(std::unique_ptr<ServerClient> server) : server_(std::move(server)) {}

  Result<void> Delete(const ChatId& chat) override {
    return Call("DELETE", "/chats/" + chat.str(), nullptr, RecordReference{chat, std::nullopt}).map([](const Json&) {});
  }
  Result<Json> ListTrash() override { return Call("GET", "/trash", nullptr, std::nullopt); }
  Result<Json> Restore(const std::string& trash_id) override {
    return Call("POST", "/trash/" + trash_id + "/restore", nullptr, std::nullopt);
  }
  Result<Json> Rename(const ChatId& chat, const std::string& title) override {
    return Call("PATCH", "/chats/" + chat.str(), {{"title", title}}, RecordReference{chat, std::nullopt});
  }
  Result<Json> Fork(const ChatId& chat, std::optional<InteractionId> interaction, const std::string& as) override {
    const std::string path = "/chats/" + chat.str();
    if (!interaction) {
      const auto found = Call("GET", path, nullptr, RecordReference{chat, std::nullopt});
      if (!found) return found;
      const auto head = InteractionId::Parse(TextMember(*found, "head"));
      if (!head) return Fail(NothingToFork(chat));
      interaction = *head;
    }
    return Call("POST", path + "/fork", ForkRequest(*interaction, as), RecordReference{chat, interaction});
  }
  ChatNames names() override { return NamesAt(*server_); }
  std::string where() const override { return server_->url(); }

 private:
  // `about`: the chat or interaction that the path names, if any.
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body,
                    const std::optional<RecordReference>& about) {
    auto answer = server_->Call(method, path, body);
    if (answer) return answer;
    if (answer.error().Is(Reason::kNotFound) && about) return Fail(Missing(*about));
    return Fail(NotAnswering(std::move(answer.error()), *server_));
  }
  Error Missing(const RecordReference& what) {
    std::vector<std::string> known;
    if (const auto chats = ChatsAt(*server_)) {
      for (const ChatId& each : *chats) known.push_back(each.str());
    }
    const std::string chat = what.chat.str();
    if (!what.interaction || !std::binary_search(known.begin(), known.end(), chat))
      return NoSuchChat(what.chat, names(), known);
    return MakeError(ErrorCode::kNotFound, "there is no " + chat + "/" + what.interaction->str() + " in " + where() +
                                               " (`reprise ls " + chat + " --all` lists its interactions)");
  }

  const std::unique_ptr<ServerClient> server_;
};

class StoredChats final : public ChatWriter {
 public:
  StoredChats(Options options, std::shared_ptr<const KeySet> keys, std::unique_ptr<ChatBucket> bucket,
              std::unique_ptr<FileInteractionStore> store)
      : options_(std::move(options)), keys_(std::move(keys)), bucket_(std::move(bucket)), store_(std::move(store)) {}

  Result<void> Delete(const ChatId& chat) override {
    // First, because nobody lists what is deleted from a fallback: a refusal must leave it there.
    auto deleted = store_->DeleteChat(chat);
    if (!deleted && !IsNotFound(deleted.error())) return deleted;
    // Otherwise its unsaved interactions would bring the chat back at the next start.
    for (const std::string& folder : UnsavedFolders(options_.data_dir)) {
      auto unsaved = OpenUnsavedStore(folder, keys_, Disk())->DeleteChat(chat);
      if (!unsaved && !IsNotFound(unsaved.error())) return unsaved;
    }
    if (!deleted) return Fail(NotThere(std::move(deleted.error()), {chat, std::nullopt}, options_.data_dir));
    return deleted;
  }
  Result<Json> ListTrash() override {
    const auto trash = TRY(store_->ListTrash());
    Json entries = Json::array();
    for (const TrashEntry& entry : trash) entries.push_back(ToJson(entry));
    return Json{{"entries", std::move(entries)}};
  }
  Result<Json> Restore(const std::string& trash_id) override {
    const auto chat = ChatId::Parse(trash_id.substr(0, trash_id.find('.')));
    if (!chat) return Fail(ErrorCode::kNotFound, "there is no such chat in the trash");
    return store_->RestoreChat(*chat, trash_id).map([](const ChatSummary& summary) { return ToJson(summary); });
  }
  Result<Json> Rename(const ChatId& chat, const std::string& title) override {
    const auto checked = ParseChatSettings(DumpJson(Json{{"title", title}}));
    if (!checked) return Fail(checked.error());
    auto renamed = store_->ChangeChat(chat, *checked);
    if (!renamed) return Fail(NotThere(std::move(renamed.error()), {chat, std::nullopt}, options_.data_dir));
    return ToJson(*renamed);
  }
  Result<Json> Fork(const ChatId& chat, std::optional<InteractionId> interaction, const std::string& as) override {
    if (!interaction) {
      const auto found = store_->LoadSummary(chat);
      if (!found) return Fail(NotThere(found.error(), {chat, std::nullopt}, options_.data_dir));
      if (!found->head) return Fail(NothingToFork(chat));
      interaction = found->head;
    }
    const auto body = TRY(ParseForkBody(DumpJson(ForkRequest(*interaction, as))));
    auto copy = store_->ForkChat(chat, *interaction, body.chat, std::nullopt);
    if (!copy) return Fail(NotThere(std::move(copy.error()), {chat, interaction}, options_.data_dir));
    const auto status = copy->head_status;
    return ChatBody({.summary = *std::move(copy), .status = status});
  }
  ChatNames names() override { return NamesIn(*store_, where()); }
  std::string where() const override { return FullPath(options_.data_dir); }

 private:
  const Options options_;
  const std::shared_ptr<const KeySet> keys_;  // null: plain
  const std::unique_ptr<ChatBucket> bucket_;  // null: none
  const std::unique_ptr<FileInteractionStore> store_;
};

// Does not make a missing key file, because a new key would open none of the chats.
Result<std::shared_ptr<const KeySet>> KeysOfFolder(const Options& options) {
  if (!options.plain && !IsFile(KeyFileOf(options))) return KeysFor(options);
  return KeysForWriting(options, options.data_dir);
}

// If there is no server: kNotFound without a data folder, kUnavailable with a database.
Result<std::unique_ptr<ChatWriter>> OpenWriter(const CommandLine& line, const Environment& environment) {
  auto options = TRY(LoadOptions(line.flags, environment));
  auto server = TRY(OpenServer(line.url, options, environment));
  if (server) return std::make_unique<ServedChats>(std::move(server));

  if (options.store.type == StoreOptions::Type::kPostgres) {
    return Fail(
        ErrorCode::kUnavailable,
        "the chats are in a database, and no server of this data folder runs: start one (`reprise serve`), or name "
        "one with --url");
  }
  if (!IsDirectory(options.data_dir)) return Fail(NoDataFolder(options.data_dir));
  auto keys = TRY(KeysOfFolder(options));
  SetLogLevel(LogLevel::kError);  // the store's findings are for a server's log
  auto bucket = TRY(ChatBucket::Open(options));
  auto store = TRY(FileInteractionStore::Open(
      {.root = options.data_dir, .keys = keys, .file_system = Disk(), .bucket = FilesOf(bucket)}));
  NoteKeysOf(options.data_dir, keys.get());
  if (bucket) {
    if (auto ready = bucket->TakeNewFiles(options.data_dir, Disk()); !ready) return Fail(std::move(ready.error()));
  }
  return std::make_unique<StoredChats>(std::move(options), std::move(keys), std::move(bucket), std::move(store));
}

constexpr std::size_t kTitle = 60;

std::string LocalTime(const std::string& utc) {
  const auto time = ParseTimestamp(utc);
  return time ? FormatForReading(*time) : utc;
}

// A checked entry of the trash, because a foreign server may send anything.
struct Deleted {
  std::string id, chat, deleted_at;
  std::optional<std::string> title;
  std::uint64_t bytes = 0;
};
std::vector<Deleted> EntriesOf(const Json& trash) {
  std::vector<Deleted> entries;
  for (const Json& each : ListedIn(trash, "entries")) {
    Deleted entry{.id = TextMember(each, "id"),
                  .chat = TextMember(each, "chat_id"),
                  .deleted_at = TextMember(each, "deleted_at"),
                  .title = {}};
    if (each.contains("title") && each["title"].is_string()) entry.title = each["title"].get<std::string>();
    if (each.contains("bytes") && each["bytes"].is_number_unsigned()) entry.bytes = each["bytes"].get<std::uint64_t>();
    entries.push_back(std::move(entry));
  }
  return entries;
}

int PrintTrash(const std::vector<Deleted>& entries) {
  if (entries.empty()) Print("the trash is empty\n");
  std::size_t chats = 0, sizes = 0, ids = 0;
  for (const Deleted& entry : entries) {
    chats = std::max(chats, entry.chat.size());
    sizes = std::max(sizes, ReadableSize(entry.bytes).size());
    ids = std::max(ids, entry.id.size());
  }
  for (const Deleted& entry : entries) {
    Print(Padded(VisibleLine(entry.chat), chats) + "  " + VisibleLine(LocalTime(entry.deleted_at)) + "  " +
          Padded(ReadableSize(entry.bytes), sizes) + "  " + Padded(VisibleLine(entry.id), ids) + "  " +
          (entry.title ? VisibleLine(Shortened(*entry.title, kTitle)) : "(its title cannot be read)") + "\n");
  }
  return kExitOk;
}

// The entry whose id or chat `wanted` names; for a chat, the one deleted last.
Result<Deleted> FindEntry(const std::vector<Deleted>& entries, const std::string& wanted, const std::string& where) {
  std::map<std::string, const Deleted*> newest;  // by chat
  std::vector<NamedChat> chats;
  for (const Deleted& entry : entries) {
    if (entry.id == wanted) return entry;
    if (newest.emplace(entry.chat, &entry).second) chats.push_back({entry.chat, entry.title.value_or("")});
  }
  auto chat = FindChat(wanted, {.has = [&](const ChatId& id) -> Result<bool> { return newest.contains(id.str()); },
                                .all = [&]() -> Result<std::vector<NamedChat>> { return chats; },
                                .where = "in the trash of " + where,
                                .hint = "`reprise restore` lists it"});
  if (!chat && chat.error().code == ErrorCode::kInvalidArgument) {  // it may have been meant as an entry's id
    chat.error().message = "there is no chat " + wanted + " in the trash of " + where + " (`reprise restore` lists it)";
  }
  if (!chat) return Fail(chat.error());
  return *newest.at(chat->str());
}

Error NotRestored(Error error, const Deleted& entry) {
  const std::string& chat = entry.chat;
  if (error.Is(Reason::kChatExists)) {
    error.message = "there is a chat " + chat +
                    " already, and the one in the trash can only come back under this name: `reprise fork " + chat +
                    " --as OTHER` and `reprise rm " + chat + "` make room for it; then `reprise restore " + entry.id +
                    "` brings it back";
  } else if (error.reason.starts_with("integrity_")) {
    error.message = entry.id + " cannot be read and stays in the trash: " + error.message;
  }
  return error;
}

}  // namespace

Exited RunRm(const CommandLine& line, const Environment& environment) {
  const auto writer = TRY(OfUse(OpenWriter(line, environment)));
  // All names are looked up first: a chat that goes must not make the name of another unique.
  std::vector<ChatId> chats;
  for (const std::string& argument : line.arguments) {
    const auto chat = FindChat(argument, writer->names()), exact = ChatId::Parse(argument);
    const bool is_missing = !chat && chat.error().code == ErrorCode::kNotFound && exact;
    if (!chat && !is_missing) return ComplainOfUse(chat.error());
    chats.push_back(is_missing ? *exact : *chat);  // a missing chat does not stop the others
  }
  Json deleted = Json::array(), failed = Json::array();
  for (const ChatId& chat : chats) {
    const auto done = writer->Delete(chat);
    if (!done) {
      Complain(done.error());
      failed.push_back({{"chat_id", chat.str()}, {"message", done.error().message}});
      continue;
    }
    deleted.push_back(chat.str());
    if (!line.json) Print(chat.str() + " is in the trash (`reprise restore " + chat.str() + "` brings it back)\n");
  }
  const bool all = failed.empty();
  if (line.json) PrintDocument({{"deleted", std::move(deleted)}, {"failed", std::move(failed)}});
  return all ? kExitOk : kExitFailure;
}

Exited RunRestore(const CommandLine& line, const Environment& environment) {
  const auto writer = TRY(OfUse(OpenWriter(line, environment)));
  const auto trash = TRY(writer->ListTrash());
  if (line.argument.empty() && line.json) return PrintDocument(trash), kExitOk;
  const std::vector<Deleted> entries = EntriesOf(trash);
  if (line.argument.empty()) return PrintTrash(entries);

  const auto entry = TRY(FindEntry(entries, line.argument, writer->where()));
  const auto restored = writer->Restore(entry.id);
  if (!restored) return Complain(NotRestored(restored.error(), entry));
  if (line.json) return PrintDocument(*restored), kExitOk;
  Print(VisibleLine(entry.chat) + " is back as it was on " + VisibleLine(LocalTime(entry.deleted_at)) + "\n");
  const auto same = std::ranges::count_if(entries, [&](const auto& each) { return each.chat == entry.chat; });
  if (same > 1) Print("others of that name are still in the trash (`reprise restore` lists them)\n");
  return kExitOk;
}

Exited RunMv(const CommandLine& line, const Environment& environment) {
  const std::string title = Joined(line.arguments, " ");
  if (title.empty()) return Misused("the title is empty");
  if (ToValidUtf8(title) != title) return Misused("the title is not UTF-8");
  const auto writer = TRY(OfUse(OpenWriter(line, environment)));
  const auto chat = TRY(OfUse(FindChat(line.argument, writer->names())));
  const auto renamed = writer->Rename(chat, title);
  if (!renamed && renamed.error().Is(Reason::kInvalidMember)) return Misused(renamed.error().message);
  if (!renamed) return Complain(renamed.error());
  return PrintEither(line.json, *renamed,
                     chat.str() + " has the title \"" + VisibleLine(TextMember(*renamed, "title")) + "\" now\n");
}

Exited RunFork(const CommandLine& line, const Environment& environment) {
  if (!line.as.empty() && !ChatId::Parse(line.as)) {
    return Misused("--as: \"" + line.as + "\" cannot be a chat's name: " + ChatId::Parse(line.as).error().message);
  }
  const auto writer = TRY(OfUse(OpenWriter(line, environment)));
  const auto what = TRY(OfUse(FindRecord(line.argument, writer->names())));
  auto copy = writer->Fork(what.chat, what.interaction, line.as);
  if (!copy && copy.error().Is(Reason::kChatExists)) {
    copy.error().message = "there is a chat " + line.as + " already (--as gives the copy another name)";
  }
  if (!copy && copy.error().Is(Reason::kNotFinished)) {
    copy.error().message += " (CHAT/INTERACTION names an earlier one; `reprise ls " + what.chat.str() + "` lists them)";
  }
  if (!copy) return Complain(copy.error());
  const Json origin = copy->contains("forked_from") ? (*copy)["forked_from"] : Json();
  return PrintEither(line.json, *copy,
                     VisibleLine(TextMember(*copy, "id") + " is a copy of " + TextMember(origin, "chat_id") +
                                 " up to " + TextMember(origin, "interaction_id")) +
                         "\n");
}

}  // namespace reprise
