#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/work_counter.h"
#include "cli/command_line.h"
#include "crypto/key_set.h"
#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/interaction_store.h"

namespace reprise {

// The stored chats for commands that only look: opened without the lock, so that a server may be running meanwhile.
class ChatReader {
 public:
  // kNotFound if there is no data folder, kForbidden if there is no key file. `reads` counts each interaction that the
  // store's LoadChat has read (null: nobody watches), and must outlive the reader.
  static Result<ChatReader> Open(const CommandLine& line, const Environment& environment, WorkCounter* reads = nullptr);

  InteractionStore& store() { return *store_; }
  FileStore& files() { return *files_; }
  const Options& options() const { return options_; }
  // Those of one chat, or of all: some may be damaged.
  Result<std::vector<ChatId>> AllChats() const;

 private:
  ChatReader(Options options, std::unique_ptr<InteractionStore> store, std::unique_ptr<FileStore> files)
      : options_(std::move(options)), store_(std::move(store)), files_(std::move(files)) {}

  Options options_;
  std::unique_ptr<InteractionStore> store_;
  std::unique_ptr<FileStore> files_;
};

// The real disk.
FileSystem& Disk();

// Null for --plain. kForbidden if there is no key file.
Result<std::shared_ptr<const KeySet>> KeysFor(const Options& options);
enum class FolderUse {
  kAdd,      // to the chats that are there
  kGiveUp,   // the same, and those whose keys are gone are given up
  kReplace,  // what is there is put in the other form
};
// The same for writing to `folder`: a key file is made if there is none, which the log says. kInvalidArgument if it
// would lie in there (a copy of the chats must not carry their key along); kForbidden as CheckFolderKeys.
Result<std::shared_ptr<const KeySet>> KeysForWriting(const Options& options, const std::string& folder,
                                                     FolderUse use = FolderUse::kAdd);
// Writes down what seals there from now on. REQUIRES: the caller holds the folder's lock.
void NoteKeysOf(const std::string& folder, const KeySet* keys);

bool IsFile(const std::string& path);
bool IsDirectory(const std::string& path);
bool HasChat(InteractionStore& store, const ChatId& chat);

// CHAT or CHAT/INTERACTION.
struct RecordReference {
  ChatId chat;
  std::optional<InteractionId> interaction;
};
// `error`, or if it is kNotFound one that names what is not there in this data folder, and how to find what is.
Error NotThere(Error error, const RecordReference& what, const std::string& data_dir);
// The same of a chat, where the chats `known` are; `where` is a folder or a server.
Error NoSuchChat(const ChatId& chat, const std::string& where, std::span<const std::string> known);
Error NoDataFolder(const std::string& data_dir);
// The path from the root on, for messages.
std::string FullPath(const std::string& path);
// kInvalidArgument: the message names `text`.
Result<RecordReference> ParseReference(std::string_view text);

// The numbers on the head's branch.
std::set<InteractionId> HeadBranch(const Chat& chat);

// A chat with its interactions, as GET /chats/{chat_id}?branches=all shows it.
Json ChatToJson(const Chat& chat, bool all_branches);

// One line for each interaction that is stored but cannot be read.
void ComplainOfDamage(const Chat& chat);

}  // namespace reprise
