#include "cli/chat_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/posix_file_system.h"
#include "cli/console.h"
#include "cli/key_access.h"
#include "cli/output_file.h"
#include "domain/codec.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
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

Result<std::shared_ptr<const KeySet>> KeysForWriting(const Options& options, const std::string& folder) {
  if (options.plain) return std::shared_ptr<const KeySet>();
  if (LiesIn(KeyFileOf(options), folder)) {
    return Fail(ErrorCode::kInvalidArgument, "the key file must not lie in the data folder");
  }
  if (!options.passphrase_file.empty() && LiesIn(options.passphrase_file, folder)) {
    return Fail(ErrorCode::kInvalidArgument, "the passphrase file must not lie in the data folder");
  }
  auto keys = LoadOrCreateKeyFile(KeyFileOf(options), Disk(), PassphraseFrom(options));
  if (!keys) return Fail(keys.error());
  return std::make_shared<const KeySet>(*std::move(keys));
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

Result<ChatReader> ChatReader::Open(const CommandLine& line, const Environment& environment) {
  auto options = LoadOptions(line.flags, environment);
  if (!options) return Fail(options.error());
  auto keys = KeysFor(*options);
  if (!keys) return Fail(keys.error());
  auto store = FileInteractionStore::Open({.root = options->data_dir,
                                           .keys = *keys,
                                           .file_system = Disk(),
                                           .access = FileInteractionStore::Access::kReadOnly});
  if (!store && store.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "there is no data folder " + options->data_dir);
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

Result<RecordReference> ParseReference(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto chat = ChatId::Parse(text.substr(0, slash));
  if (!chat) return Fail(chat.error());
  if (slash == std::string_view::npos) return RecordReference{*chat, std::nullopt};
  const auto interaction = InteractionId::Parse(text.substr(slash + 1));
  if (!interaction) return Fail(interaction.error());
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
