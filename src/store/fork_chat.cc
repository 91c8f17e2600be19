// Whole chats that come in beside the others: copies of a branch, and what is imported.
#include <algorithm>
#include <utility>

#include "base/try.h"
#include "store/file_blob_store.h"
#include "store/file_interaction_store.h"
#include "store/incoming_chats.h"
#include "store/sealed_file_store.h"
#include "store/store_errors.h"

namespace reprise {

Result<std::vector<InteractionId>> FileInteractionStore::BranchUpTo(const ChatId& chat, InteractionId last) {
  std::vector<InteractionId> branch{last};
  auto header = TRY(files_.ReadHeader(chat, last));
  while (header.links.parent) {
    const InteractionId id = branch.back();
    const RecordPlace parent{.chat = chat, .interaction = header.links.parent};
    // Parents are older, so this ends.
    if (*parent.interaction >= id) {
      return Fail(IntegrityError("auth", {.chat = chat, .interaction = id}, "it is its parent"));
    }
    auto before = files_.ReadHeader(chat, *parent.interaction);
    if (!before && before.error().code == ErrorCode::kNotFound) {
      return Fail(IntegrityError("missing", parent, "the file is gone"));
    }
    if (!before) return Fail(std::move(before.error()));
    if (header.links.parent_digest && *header.links.parent_digest != before->digest) {
      return Fail(IntegrityError("rollback", parent, "it is not the version that the next interaction was built on"));
    }
    branch.push_back(*parent.interaction);
    header = *std::move(before);
  }
  std::reverse(branch.begin(), branch.end());
  return branch;
}

Result<ChatSummary> FileInteractionStore::ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                                                   const std::optional<std::string>& title) {
  TRY(CheckWritable());
  for (;;) {
    TRY(LoadSummary(source));
    const auto before = FindState(source);
    auto copied = CopyChat(source, last, chat, title);
    if (copied || copied.error().code == ErrorCode::kNotFound || copied.error().reason == "chat_exists") return copied;
    // What was deleted meanwhile is neither damaged nor a fault of the disk.
    const auto held = HoldChat(source, Missing::kFail, Hold::kState);
    if (!held && held.error().code == ErrorCode::kNotFound) return Fail(held.error());
    if (!held || held->state == before) return copied;
  }
}

Result<ChatSummary> FileInteractionStore::CopyChat(const ChatId& source, InteractionId last, const ChatId& chat,
                                                   const std::optional<std::string>& title) {
  IncomingChat copy = TRY(CopyUpTo(*this, source, last, chat, title));
  copy.interactions = TRY(BranchUpTo(source, last));
  // Files that cannot be read stay behind: the fork is of the interactions, and those name files that may be gone.
  SealedFileStore files(
      {.root = options_.root, .keys = options_.keys, .file_system = options_.file_system, .bucket = options_.bucket});
  TRY(AddReadableFiles(files, source, copy));
  FileBlobStore blobs(options_.root, options_.keys, options_.file_system);
  TRY(AddReadableBlobs(blobs, source, copy));
  return AddWhole(copy);
}

Result<ChatSummary> FileInteractionStore::AddWhole(const IncomingChat& incoming) {
  const ChatId& chat = incoming.summary.id;
  const MutexLock turn(fork_mutex_);
  // Keeps every other use of the name waiting until what is on disk can be read.
  auto held = HoldChat(chat, Missing::kLeave, Hold::kStateAndIndex);
  if (!held && held.error().code != ErrorCode::kCorruption) return Fail(std::move(held.error()));
  // Also by a damaged one.
  if (!held || !held->created) return Conflict("chat_exists", "there is a chat of this name already");
  auto folder = IncomingChats::Open({.root = options_.root,
                                     .keys = options_.keys,
                                     .file_system = options_.file_system,
                                     .lock = false,
                                     .bucket = options_.bucket});
  auto added = folder.and_then([&](const IncomingChats& chats) { return chats.Add(incoming); });
  Retire(chat, *held);
  queues_.Forget(chat);
  if (!added) return Fail(std::move(added.error()));
  return LoadSummary(chat);
}

Result<ChatSummary> FileInteractionStore::ImportChat(const IncomingChat& chat) {
  TRY(CheckWritable());
  return AddWhole(chat);
}

}  // namespace reprise
