#include "client/archive/chat_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/private_file.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "domain/codec.h"
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

}  // namespace reprise
