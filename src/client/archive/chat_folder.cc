#include "client/archive/chat_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "crypto/jwe.h"
#include "domain/codec.h"
#include "engine/moves/source_text.h"
#include "reprise/history.h"
#include "store/chat_index.h"
#include "store/file_blob_store.h"
#include "store/file_names.h"
#include "store/linked_state.h"
#include "store/record.h"

namespace reprise {
namespace {

// Returns the faults of the unreadable files.
Result<std::vector<Error>> WriteFiles(const std::string& root, const ChatId& chat, FileStore& files) {
  const auto listing = TRY(files.List(chat));
  std::vector<Error> left;
  for (const DamagedFile& damaged : listing.damaged) left.push_back(damaged.error);
  if (listing.files.empty()) return left;
  TRY(Disk().CreateDirectory(FilesDirectory(root, chat)));
  for (const FileInfo& each : listing.files) {
    auto file = files.Get(chat, each.id);
    if (!file && file.error().code != ErrorCode::kCorruption) return Fail(std::move(file.error()));
    if (!file) {
      left.push_back(std::move(file.error()));
      continue;
    }
    TRY(ReplaceFile(Disk(), FilePath(root, chat, each.id), FileToJson(chat, *file) + "\n"));
  }
  TRY(Disk().SyncDirectory(FilesDirectory(root, chat)));
  return left;
}

// Writes the blobs that the interactions refer to. Adds the faults of the unreadable ones.
Result<void> WriteBlobs(const std::string& root, const Chat& chat, BlobStore& blobs, std::vector<Error>& left) {
  FileBlobStore target(root, nullptr, Disk());
  for (const Interaction& interaction : chat.interactions) {
    for (const std::string& digest : BlobsOf(interaction)) {
      auto content = blobs.Get(chat.summary.id, digest);
      if (!content && content.error().code == ErrorCode::kNotFound) continue;
      if (!content && content.error().code != ErrorCode::kCorruption) return Fail(std::move(content.error()));
      if (!content) {
        left.push_back(std::move(content.error()));
        continue;
      }
      TRY(target.Put(chat.summary.id, {Blob{digest, *std::move(content)}}));
    }
  }
  return {};
}

// The JSON of interactions, parents first. The first, short states are whole, so that any program can read them; the
// others are additions only (schemas/FILES.md, "Long chats").
class Documents {
 public:
  explicit Documents(InteractionStore& store) : store_(store) {}

  Result<Json> Next(const ChatId& chat, InteractionId id) {
    const AddedInteraction added = TRY(store_.LoadAdded(chat, id));
    const auto& state = added.interaction.final_agent_state;
    if (!state) return ToJson(added.interaction);
    const auto parent = added.kept_messages == 0 ? totals_.end() : totals_.find(*added.interaction.parent_id);
    const bool is_whole = added.kept_messages == 0;
    const bool continues = parent != totals_.end() && parent->second.messages == added.kept_messages;
    if (continues) {
      const auto& totals = totals_[id] = Continued(parent->second, state->messages);
      if (totals.bytes > whole_left_) {
        whole_left_ = 0;
        return ToLinkedJson(added, totals);
      }
      whole_left_ -= totals.bytes;
    }
    if (is_whole) {
      totals_[id] = TotalsOf(*state);
      return ToJson(added.interaction);
    }
    if (auto whole = store_.LoadInteraction(chat, id)) {
      totals_[id] = TotalsOf(*whole->final_agent_state);
      return ToJson(*whole);
    }
    Interaction without = added.interaction;  // the state it continues is unreadable
    without.final_agent_state.reset();
    return ToJson(without);
  }

 private:
  InteractionStore& store_;
  std::map<InteractionId, StateTotals> totals_;  // of the written states
  std::uint64_t whole_left_ = kRepeatedBytes;
};

Result<void> WriteDocuments(const std::string& root, const Chat& chat, InteractionStore& store, WorkCounter& counter) {
  const ChatId& id = chat.summary.id;
  for (const std::string& made : {ChatDirectory(root, id), InteractionsDirectory(root, id)}) {
    TRY(Disk().CreateDirectory(made));
  }
  ChatIndex index{.summary = {.id = id, .created_at = chat.summary.created_at}};
  Documents documents(store);
  for (const Interaction& listed : chat.interactions) {
    const std::string text = DumpJson(TRY(documents.Next(id, listed.id))) + "\n";
    TRY(ReplaceFile(Disk(), InteractionFile(root, id, listed.id), text, Durability::kUnsynced));
    AddToIndex(index, listed, Sha256Digest({text}));
    TRY(CountStep(&counter));
  }
  // If the chat's own head cannot be read, the newest interaction becomes the head.
  const bool has_head =
      std::ranges::any_of(chat.interactions, [&](const Interaction& one) { return one.id == chat.summary.head; });
  if (has_head || chat.interactions.empty()) {
    const ChatSummary counted = std::exchange(index.summary, chat.summary);
    index.summary.model = counted.model;
    index.summary.approval_mode.reset();  // a choice for this store does not hold elsewhere
    index.summary.tokens = counted.tokens;
  } else {
    index.summary.title = chat.summary.title;
  }
  if (chat.interactions.empty()) index.summary.head.reset(), index.summary.head_status.reset();
  return ReplaceFile(Disk(), ChatFile(root, id), ChatIndexToJson(index) + "\n").and_then([&] {
    return Disk().SyncTree(ChatDirectory(root, id));
  });
}

Result<void> Exchange(const std::string& made, const std::string& target) {
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return {};
  return Fail(ErrorCode::kUnavailable, target + " cannot be replaced in one step on this disk; remove it first",
              std::generic_category().message(errno));
}

}  // namespace

Result<std::vector<Error>> WriteChatFolder(const std::string& directory, const Chat& chat, InteractionStore& store,
                                           FileStore& files, BlobStore& blobs, bool replace, WorkCounter& counter) {
  const std::string target = ChatDirectory(directory, chat.summary.id);
  auto free = CheckNothingThere(target);
  if (!free && !replace) return Fail(std::move(free.error()));
  const std::string folder = IncomingDirectory(directory);
  std::vector<Error> left;
  auto written = CreateDirectories(Disk(), folder)
                     .and_then([&](bool) { return WriteDocuments(folder, chat, store, counter); })
                     .and_then([&] { return WriteFiles(folder, chat.summary.id, files); })
                     .map([&](std::vector<Error> damaged) { left = std::move(damaged); })
                     .and_then([&] { return WriteBlobs(folder, chat, blobs, left); });
  // Exchanges the old folder with the new one in one step, so that one is always in place; then removes the old one.
  const std::string made = ChatDirectory(folder, chat.summary.id);
  if (written) written = free ? MoveToFreeName(made, target) : Exchange(made, target);
  if (written) written = Disk().SyncDirectory(directory);
  std::error_code ignored;  // a leftover has a name that nothing reads
  std::filesystem::remove_all(folder, ignored);
  if (!written) return Fail(std::move(written.error()));
  return left;
}

namespace {

constexpr std::uint64_t kMaxDocumentBytes = 1ULL << 30;  // a whole chat in one file
// One of which a chat, an interaction or a sealed one has near its beginning.
constexpr const char* kFirstMembers[] = {"\"interactions\"", "\"user_message\"", "\"ciphertext\""};

tl::unexpected<Error> Unusable(const std::string& where, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, where + ": " + std::string(what));
}

// The text of a plain file.
Result<std::string> ReadPlain(const std::string& path) {
  auto text = Disk().ReadFile(path, kMaxDocumentBytes);
  if (!text) return Fail(text.error().code, path + ": " + text.error().message);
  if (LooksLikeJwe(*text)) return Unusable(path, "it is sealed; `reprise decrypt` makes a plain copy where its key is");
  return text;
}

constexpr const char* kNeither =
    "it is neither a chat nor a session of a tool that is known here; if it is one, name the tool with --from "
    "(docs/moves.md)";

// That a large file begins like one of ours, before all of it is loaded. kInvalidArgument, with the next step.
Result<void> CheckBeginning(const std::string& path) {
  constexpr std::size_t kSmall = 16 << 20, kBeginning = 64 << 10;
  const auto source = SourceText::Open(path);
  if (!source || source->size() <= kSmall) return {};
  const std::string beginning = TRY(source->Read(0, kBeginning));
  const auto has = [&](const char* member) { return beginning.find(member) != std::string::npos; };
  if (Trimmed(beginning).starts_with('{') && std::ranges::any_of(kFirstMembers, has)) return {};
  return Unusable(path, kNeither);
}

// Whether it begins with two lines of JSON, as other programs write them.
bool IsLines(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  const std::string_view rest = text.substr(end + 1);
  return ParseJson(text.substr(0, end), kMaxChatDepth) && ParseJson(rest.substr(0, rest.find('\n')), kMaxChatDepth);
}

Result<Json> ReadObject(const std::string& path) {
  const std::string text = TRY(ReadPlain(path));
  auto json = ParseJson(text, kMaxChatDepth);
  if (!json && IsLines(text)) return Unusable(path, kNeither);
  if (!json) return Unusable(path, json.error().message);
  if (!json->is_object()) return Unusable(path, "it is no JSON object");
  return json;
}

// Reads an interaction. Its state may be stored as additions to that of an earlier file.
Result<Json> ReadInteractionFile(const std::string& path) {
  Json json = TRY(ReadObject(path));
  const auto link = UnlinkState(json);
  if (!link) return Unusable(path, link.error().message);
  if (*link) json["final_agent_state"][kKeptMessages] = (*link)->kept;
  return json;
}

Result<std::vector<ForeignInteraction>> ReadFolder(const std::string& path) {
  std::vector<ForeignInteraction> documents;
  const std::string folder = path + "/interactions";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return documents;
  if (!entries) return Fail(entries.error());
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    const bool json = entry.name.ends_with(".json") && !entry.name.starts_with('.');
    if (json && !entry.is_directory) names.push_back(entry.name);
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string file = folder + "/" + name;
    auto json = TRY(ReadInteractionFile(file));
    std::string id = TextMember(json, "id");
    if (id.empty()) id = name.substr(0, name.size() - std::string_view(".json").size());
    documents.push_back({.where = file, .name = std::move(id), .json = std::move(json)});
  }
  return documents;
}

Result<void> ReadFiles(const std::string& path, ForeignChat& chat) {
  const std::string folder = path + "/files";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return {};
  if (!entries) return Fail(entries.error());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory || !ParseFileName(entry.name)) continue;
    const std::string where = folder + "/" + entry.name;
    const auto text = TRY(ReadPlain(where));
    const auto place = PlaceOfFile(text);
    if (!place) return Unusable(where, place.error().message);
    auto file = FileFromJson(*place, text);
    if (!file) return Unusable(where, file.error().message);
    TRY(AddForeignFile(*std::move(file), where, chat));
  }
  return {};
}

Result<void> ReadBlobs(const std::string& path, ForeignChat& chat) {
  const std::string folder = path + "/blobs";
  const auto entries = Disk().ListDirectory(folder);
  if (!entries && entries.error().code == ErrorCode::kNotFound) return {};
  if (!entries) return Fail(entries.error());
  for (const DirectoryEntry& entry : *entries) {
    const auto name = entry.is_directory ? std::nullopt : ParseBlobName(entry.name);
    if (!name || *name == kBlobNames || *name == kBlobPosition) continue;
    const std::string where = folder + "/" + entry.name;
    const auto text = TRY(ReadPlain(where));
    const auto json = ParseJson(text);
    if (!json) return Unusable(where, "it is not JSON");
    auto blob = BlobFromJson(*json);
    if (!blob) return Unusable(where, blob.error().message);
    chat.blobs.push_back(*std::move(blob));
  }
  return {};
}

}  // namespace

bool IsChatFolder(const std::string& path) {
  return IsDirectory(path + "/interactions") && !IsDirectory(path + "/interactions/interactions");
}

// Other programs write a chat as a file of this name in a folder.
Result<FoundChats> FindForeignChats(const std::string& path) {
  const auto is_chat = [](const std::string& folder) { return IsChatFolder(folder) || IsFile(folder + "/chat.json"); };
  if (IsFile(path) || (IsDirectory(path) && is_chat(path))) return FoundChats{.paths = {path}};
  if (std::error_code unknown; !IsDirectory(path) && std::filesystem::exists(path, unknown))
    return Fail(ErrorCode::kInvalidArgument, path + " is neither a file nor a folder; give the chat as a file");
  if (!IsDirectory(path)) return Fail(ErrorCode::kNotFound, "there is no file or folder " + path);
  const auto entries = TRY(Disk().ListDirectory(path));
  FoundChats found;
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.starts_with('.') || ParseAuditFile(entry.name)) continue;
    const std::string below = path + "/" + entry.name;
    const bool is_document = entry.name.ends_with(".json") || entry.name.ends_with(".jsonl");
    const bool may_be_chat = entry.is_directory ? is_chat(below) : is_document && IsFile(below);
    (may_be_chat ? found.paths : found.others).push_back(may_be_chat ? below : entry.name);
  }
  std::ranges::sort(found.paths);
  std::ranges::sort(found.others);
  if (found.paths.empty()) return Fail(ErrorCode::kInvalidArgument, "there is no chat in " + path);
  return found;
}

Result<ForeignChat> ReadForeignChat(const std::string& path) {
  if (!IsDirectory(path)) {
    TRY(CheckBeginning(path));
    auto chat = ReadObject(path).and_then([&](Json document) { return ReadChatDocument(std::move(document), path); });
    if (chat && chat->name.empty()) chat->name = std::filesystem::path(path).stem();
    if (chat) NoteMissingFiles(*chat);
    return chat;
  }
  ForeignChat chat;
  Json about = Json::object();
  chat.name = std::filesystem::path(FullPath(path + "/")).parent_path().filename();
  if (IsFile(path + "/chat.json")) {
    about = TRY(ReadObject(path + "/chat.json"));
    if (about.contains("schema") && about["schema"] != 1) {
      return Unusable(path + "/chat.json", "its schema is not known here");
    }
  }
  if (const std::string id = TextMember(about, "id"); !id.empty()) chat.name = id;
  auto documents = TRY(ReadFolder(path));
  // For programs that write each chat as one file in a folder of its own.
  const bool all_in_one = documents.empty() && MemberOf(about, "interactions").is_array();
  if (all_in_one) {
    auto whole = ReadChatDocument(std::move(about), path);
    if (whole) whole->name = chat.name;
    if (!whole) return whole;
    chat = *std::move(whole);
  } else {
    if (about.contains("damaged")) chat.notes.push_back("the export lacks interactions that were damaged");
    TRY(ReadInteractions(std::move(documents), about, chat));
  }
  if (auto read = ReadFiles(path, chat).and_then([&] { return ReadBlobs(path, chat); }); !read) {
    return Fail(std::move(read.error()));
  }
  NoteMissingFiles(chat);
  return chat;
}

}  // namespace reprise
