#include "cli/chat_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "base/logging.h"
#include "base/posix_file_system.h"
#include "cli/console.h"
#include "cli/did_you_mean.h"
#include "cli/key_access.h"
#include "cli/output_file.h"
#include "domain/codec.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
#include "store/folder_keys.h"
#include "store/sealed_file_store.h"

namespace reprise {

FileSystem& Disk() {
  static PosixFileSystem disk;  // stateless; stores refer to it
  return disk;
}

Result<std::shared_ptr<const KeySet>> KeysFor(const Options& options) {
  if (options.plain) return std::shared_ptr<const KeySet>();
  const std::string path = KeyFileOf(options);
  auto keys = LoadKeyFile(path, Disk(), PassphraseFrom(options));
  if (keys) return std::make_shared<const KeySet>(*std::move(keys));
  if (keys.error().code != ErrorCode::kNotFound) return Fail(keys.error());
  return Fail(ErrorCode::kForbidden,
              "there is no key file " + path + " to open the chats with (--key-file, or --plain)");
}

namespace {

Result<void> CheckFolder(const Options& options, const std::string& folder, const KeySet* keys, FolderUse use) {
  const FolderMode mode = options.plain ? FolderMode::kPlain : FolderMode::kSealed;
  auto found = ReadFolderKeys(folder, mode, keys, Disk());
  if (!found) return Fail(std::move(found.error()));
  if (use == FolderUse::kGiveUp) found->missing.clear();
  if (use == FolderUse::kReplace) found->plain_chats = 0;
  return CheckFolderKeys(*found, mode, folder, KeyFileOf(options));
}

}  // namespace

Result<std::shared_ptr<const KeySet>> KeysForWriting(const Options& options, const std::string& folder, FolderUse use) {
  if (options.plain) {
    return CheckFolder(options, folder, nullptr, use).map([] { return std::shared_ptr<const KeySet>(); });
  }
  if (LiesIn(KeyFileOf(options), folder)) {
    return Fail(ErrorCode::kInvalidArgument, "the key file must not lie in the data folder");
  }
  if (!options.passphrase_file.empty() && LiesIn(options.passphrase_file, folder)) {
    return Fail(ErrorCode::kInvalidArgument, "the passphrase file must not lie in the data folder");
  }
  const std::string path = KeyFileOf(options);
  auto keys = LoadKeyFile(path, Disk(), PassphraseFrom(options));
  const bool made = !keys && keys.error().code == ErrorCode::kNotFound;
  if (!keys && !made) return Fail(keys.error());
  // Before a key is made: the one that is missing may only be in another place.
  if (auto sound = CheckFolder(options, folder, made ? nullptr : &*keys, use); !sound) return Fail(sound.error());
  if (made) keys = LoadOrCreateKeyFile(path, Disk(), PassphraseFrom(options));
  if (!keys) return Fail(keys.error());
  if (made) {
    LogWarning("a new key was made; keep a copy of its file elsewhere, for without it nobody can open the chats",
               {{"key_file", path}});
  }
  return std::make_shared<const KeySet>(*std::move(keys));
}

void NoteKeysOf(const std::string& folder, const KeySet* keys) {
  const FolderMode mode = keys == nullptr ? FolderMode::kPlain : FolderMode::kSealed;
  const auto noted = ReadFolderKeys(folder, mode, keys, Disk()).and_then([&](const FolderKeys& found) {
    return NoteFolderKeys(found, folder, keys, Disk());
  });
  // Without it the next start looks at the chats themselves.
  if (!noted) LogWarning("the folder's keys could not be written down", {{"error", noted.error().message}});
}

bool IsFile(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool HasChat(InteractionStore& store, const ChatId& chat) {
  const auto summary = store.LoadSummary(chat);
  return summary || summary.error().code != ErrorCode::kNotFound;
}

Result<ChatReader> ChatReader::Open(const CommandLine& line, const Environment& environment, WorkCounter* reads) {
  auto options = LoadOptions(line.flags, environment);
  if (!options) return Fail(options.error());
  auto keys = KeysFor(*options);
  if (!keys) return Fail(keys.error());
  auto store = FileInteractionStore::Open({.root = options->data_dir,
                                           .keys = *keys,
                                           .file_system = Disk(),
                                           .access = FileInteractionStore::Access::kReadOnly,
                                           .reads = reads});
  if (!store && store.error().code == ErrorCode::kNotFound) {
    return Fail(NoDataFolder(options->data_dir));
  }
  if (!store) return Fail(store.error());
  auto files = std::make_unique<SealedFileStore>(
      SealedFileStore::Options{.root = options->data_dir, .keys = *keys, .file_system = Disk()});
  return ChatReader(*std::move(options), *std::move(store), std::move(files));
}

Result<std::vector<ChatId>> ChatReader::AllChats() const {
  // Only names are read: which format they are in does not matter.
  auto chats = ChatFiles(options_.data_dir, MakeRecordFormat(nullptr), Disk()).ListChats();
  if (chats) std::sort(chats->begin(), chats->end());
  return chats;
}

std::string FullPath(const std::string& path) {
  std::error_code failed;
  const auto full = std::filesystem::absolute(path, failed);
  return failed ? path : full.lexically_normal().string();
}

Error NoDataFolder(const std::string& data_dir) {
  return MakeError(ErrorCode::kNotFound, "there is no data folder " + FullPath(data_dir) +
                                             " (--data-dir names another one, `reprise serve` makes one)");
}

Error NoSuchChat(const ChatId& chat, const std::string& where, std::span<const std::string> known) {
  return MakeError(ErrorCode::kNotFound, "there is no chat " + chat.str() + " in " + where +
                                             DidYouMean(chat.str(), known) + " (`reprise ls` lists them)");
}

Error NotThere(Error error, const RecordReference& what, const std::string& data_dir) {
  if (error.code != ErrorCode::kNotFound) return error;
  const std::string chat = what.chat.str();
  if (what.interaction && IsDirectory(data_dir + "/" + chat)) {
    error.message = "there is no " + chat + "/" + what.interaction->str() + " in " + FullPath(data_dir) +
                    " (`reprise ls " + chat + " --all` lists its interactions)";
    return error;
  }
  std::vector<std::string> known;
  if (const auto chats = ChatFiles(data_dir, MakeRecordFormat(nullptr), Disk()).ListChats()) {
    for (const ChatId& other : *chats) known.push_back(other.str());
    std::sort(known.begin(), known.end());
  }
  return NoSuchChat(what.chat, FullPath(data_dir), known);
}

Result<RecordReference> ParseReference(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto named = [&](Error error) {
    error.message = "\"" + std::string(text) + "\" names nothing: " + error.message;
    return Fail(std::move(error));
  };
  auto chat = ChatId::Parse(text.substr(0, slash));
  if (!chat) return named(std::move(chat.error()));
  if (slash == std::string_view::npos) return RecordReference{*chat, std::nullopt};
  auto interaction = InteractionId::Parse(text.substr(slash + 1));
  if (!interaction) return named(std::move(interaction.error()));
  return RecordReference{*chat, *interaction};
}

std::set<InteractionId> HeadBranch(const Chat& chat) {
  std::map<InteractionId, std::optional<InteractionId>> parents;
  for (const Interaction& interaction : chat.interactions) parents[interaction.id] = interaction.parent_id;
  std::set<InteractionId> branch;
  for (auto id = chat.summary.head; id && branch.insert(*id).second;) {
    const auto parent = parents.find(*id);
    id = parent == parents.end() ? std::nullopt : parent->second;  // a damaged one ends what is known of the branch
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
    json["damaged"].push_back({{"interaction_id", damaged.id.str()},
                               {"error", {{"code", damaged.error.reason}, {"message", damaged.error.message}}}});
  }
  return json;
}

void ComplainOfDamage(const Chat& chat) {
  for (const DamagedInteraction& damaged : chat.damaged) Complain(damaged.error);
}

}  // namespace reprise
