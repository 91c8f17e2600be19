#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/options.h"
#include "archive/chat_source.h"
#include "base/environment.h"
#include "base/json.h"
#include "base/queues.h"
#include "reprise/blob_store.h"
#include "reprise/file_store.h"
#include "reprise/interaction_store.h"

namespace reprise {

// The stored chats, in a folder or a database, for commands that only read. Takes no lock, so a server may run.
class ChatReader {
 public:
  // kNotFound if there is no data folder, kForbidden if there is no key file. `reads` counts each interaction that the
  // store's LoadChat has read; may be null, and must outlive the reader.
  static Result<ChatReader> Open(const Flags& flags, const Environment& environment, WorkCounter* reads = nullptr);

  InteractionStore& store() { return *store_; }
  FileStore& files() { return *files_; }
  BlobStore& blobs() { return *blobs_; }
  const Options& options() const { return options_; }
  // The ids of all chats, including damaged ones.
  Result<std::vector<ChatId>> AllChats() const;
  // `chat` if it exists, else the only chat whose id begins with it.
  ChatId Named(const ChatId& chat) const;

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

}  // namespace reprise
