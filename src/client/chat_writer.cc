#include "client/chat_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/keys.h"
#include "base/logging.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "client/archive/chat_reader.h"
#include "client/server_access.h"
#include "domain/codec.h"
#include "doors/api/requests.h"
#include "doors/chat_lists.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
#include "store/unsaved.h"

namespace reprise {
namespace {

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

class ChatsOfFolder final : public ChatWriter {
 public:
  ChatsOfFolder(Options options, std::shared_ptr<const KeySet> keys, std::unique_ptr<ChatBucket> bucket,
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

}  // namespace

Result<std::unique_ptr<ChatWriter>> ChatWriter::Open(const Flags& flags, const std::string& url,
                                                     const Environment& environment) {
  auto options = TRY(LoadOptions(flags, environment));
  auto server = TRY(OpenServer(url, options, environment));
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
  return std::make_unique<ChatsOfFolder>(std::move(options), std::move(keys), std::move(bucket), std::move(store));
}

}  // namespace reprise
