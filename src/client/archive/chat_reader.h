#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/options.h"
#include "base/json.h"
#include "base/path.h"
#include "base/queues.h"
#include "base/system.h"
#include "client/archive/chat_names.h"
#include "crypto/key_set.h"
#include "remote/postgres/database.h"
#include "remote/postgres/database_files.h"
#include "reprise/blob_store.h"
#include "reprise/file_store.h"
#include "reprise/file_system.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/interaction_store.h"
#include "reprise/options.h"
#include "reprise/principal.h"
#include "reprise/result.h"

namespace reprise {

// The source of stored chats: the data folder, or a database that looks like one to readers.
class ChatSource {
 public:
  // Fails if the database is unusable; does not look at a folder yet.
  static Result<ChatSource> Open(const Options& options);

  const std::string& root() const { return root_; }
  FileSystem& file_system() const;

  // The data of each user of a database, as a data folder, with its keys, derived from the operator's (null: plain).
  // Without the operator's own data. Empty for a folder, where each user has a folder.
  struct OfUser {
    Principal user;
    std::unique_ptr<DatabaseFiles> files;
    Result<std::shared_ptr<const KeySet>> keys;
  };
  Result<std::vector<OfUser>> OfUsers(const KeySet* operators) const;

 private:
  explicit ChatSource(std::string root) : root_(std::move(root)) {}

  std::string root_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<DatabaseFiles> files_;  // null for a folder
};

// References of people to stored chats, and the errors for unknown ones.

// `error`, but for kNotFound a message that names the missing record, the data folder, and a command that lists it.
Error NotThere(Error error, const RecordReference& what, const std::string& data_dir);
// For what needs a turn of the chat that has ended.
Error NothingFinished(const ChatId& chat);
// For what needs the whole chat.
Error ChatIsDamaged(const ChatId& chat);
Error NoDataFolder(const std::string& data_dir);

// The stored chats, in a folder or a database, for commands that only read. Takes no lock, so a server may run.
class ChatReader {
 public:
  // kNotFound if there is no data folder, kForbidden if there is no key file. `reads` counts each interaction that the
  // store's LoadChat has read; may be null, and must outlive the reader.
  static Result<ChatReader> Open(const Flags& flags, const Environment& environment, WorkCounter* reads = nullptr);

  InteractionStore& store() { return *store_; }
  FileStore& files() { return *files_; }
  BlobStore& blobs() { return *blobs_; }
  const ChatSource& source() const { return source_; }
  const Options& options() const { return options_; }
  // The ids of all chats, including damaged ones.
  Result<std::vector<ChatId>> AllChats() const;
  // Must not outlive the reader.
  ChatNames names() { return NamesIn(*store_, FullPath(options_.data_dir)); }

 private:
  ChatReader(Options options, std::unique_ptr<ChatBucket> bucket, ChatSource source,
             std::unique_ptr<InteractionStore> store, std::unique_ptr<FileStore> files,
             std::unique_ptr<BlobStore> blobs)
      : options_(std::move(options)),
        bucket_(std::move(bucket)),
        source_(std::move(source)),
        store_(std::move(store)),
        files_(std::move(files)),
        blobs_(std::move(blobs)) {}

  Options options_;
  std::unique_ptr<ChatBucket> bucket_;  // null if there is none, or it is unusable
  ChatSource source_;
  std::unique_ptr<InteractionStore> store_;
  std::unique_ptr<FileStore> files_;
  std::unique_ptr<BlobStore> blobs_;
};

// The stored record that an argument names; nullopt: it can only be a file. A chat's exact id beats a file of that
// name, which beats other names of chats. Fails as ChatReader::Open and FindRecord do.
struct StoredRecord {
  ChatReader reader;
  RecordReference what;
};
Result<std::optional<StoredRecord>> FindStored(const std::string& text, const Flags& flags,
                                               const Environment& environment);

// Prints one line for each stored interaction that cannot be read.
void ComplainOfDamage(const Chat& chat);

// The interactions on the head's branch.
std::set<InteractionId> HeadBranch(const Chat& chat);

// A chat with its interactions, in the form of GET /chats/{chat_id}?branches=all.
Json ChatToJson(const Chat& chat, bool all_branches);

// The amount of work, for a progress line: counted by names alone, in a thousandth of the work's time. Skips folders
// that cannot be listed; the work itself reports them.
struct StoredCount {
  std::uint64_t chats = 0, interactions = 0, journals = 0, files = 0;
};
StoredCount CountStored(const std::string& data_dir, std::span<const ChatId> chats);

// The number of regular files in a folder and its subfolders; follows no link.
std::uint64_t CountFilesBelow(const std::string& folder);

// The plaintext of a single file in any place: a checkpoint, a chat.json, a journal, or a server's own file.
struct LoneFile {
  std::string text;      // JSON; one value per line for a journal
  bool cut_off = false;  // of a journal: its last record was incomplete, and is left out
  bool is_part = false;  // an interaction with a long state, without the folder that has the rest
};

// A plain file needs no key. kNotFound, kForbidden (sealed, but there is no key file), kCorruption.
Result<LoneFile> ReadLoneFile(const std::string& path, const Options& options);

// The finished interaction in such a file. The same failures; kInvalidArgument if the file holds something else.
Result<Interaction> ReadLoneInteraction(const std::string& path, const Options& options);

}  // namespace reprise
