// Whole chats that are added beside the others: copies of a branch, and imports.
#include "store/incoming_chats.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "base/at_once.h"
#include "base/atomic_write.h"
#include "base/json.h"
#include "base/logging.h"
#include "base/queues.h"
#include "base/try.h"
#include "domain/codec.h"
#include "store/chat_files.h"
#include "store/file_blob_store.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"
#include "store/linked_state.h"
#include "store/sealed_file_store.h"
#include "store/store_errors.h"

namespace reprise {

namespace {

void RemoveAll(const std::string& folder) {
  std::error_code ignored;  // remains are removed before the next chat is added
  std::filesystem::remove_all(folder, ignored);
}

// Whether the folder has only files that are made while a chat is assembled.
bool IsIncoming(const std::string& folder, FileSystem& file_system, int depth = 0) {
  const auto entries = file_system.ListDirectory(folder);
  return entries && std::ranges::all_of(*entries, [&](const DirectoryEntry& entry) {
           if (!entry.is_directory) return IsNameInChat(entry.name) || IsTemporaryName(entry.name);
           constexpr int kDepth = 2;  // CHAT/interactions
           return depth < kDepth && IsIncoming(folder + "/" + entry.name, file_system, depth + 1);
         });
}

tl::unexpected<Error> Changed(const std::string& what) {
  return Fail(ErrorCode::kIo, what + " did not come back from the disk as it was written");
}

std::string AsText(const Interaction& interaction, std::size_t first_message = 0) {
  std::string text;
  AppendJson(text, interaction, first_message);
  return text;
}

// Adds the readable files. Each is read, because the list does not show damage of files that are in a bucket.
Result<void> AddReadableFiles(const std::shared_ptr<FileStore>& from, const ChatId& source, IncomingChat& chat) {
  const auto listing = TRY(from->List(source));
  for (const FileInfo& file : listing.files) {
    const auto readable = from->Get(source, file.id);
    if (!readable && readable.error().code == ErrorCode::kCorruption) continue;
    if (!readable) return Fail(readable.error());
    chat.files.push_back(file.id);
  }
  chat.load_file = [from, source](const FileId& file) { return from->Get(source, file); };
  return {};
}

// Adds the readable blobs that the interactions name.
Result<void> AddReadableBlobs(const std::shared_ptr<BlobStore>& from, const ChatId& source, IncomingChat& chat) {
  if (const auto any = from->List(source); any && any->empty()) return {};
  std::set<std::string> wanted;
  for (const InteractionId id : chat.interactions) {
    for (const std::string& digest : BlobsOf(TRY(chat.load(id)))) wanted.insert(digest);
  }
  for (const std::string& digest : wanted) {
    const auto there = from->Get(source, digest);
    if (!there && there.error().code != ErrorCode::kCorruption && !IsNotFound(there.error())) {
      return Fail(there.error());
    }
    if (there) chat.blobs.push_back(digest);
  }
  chat.load_blob = [from, source](const std::string& digest) { return from->Get(source, digest); };
  return {};
}

// Calls `work` with 0 to `count` - 1, on some threads at once, until one fails.
Result<void> ForEachAtOnce(std::size_t count, const std::function<Result<void>(std::size_t)>& work) {
  constexpr std::size_t kMost = 4;  // threads
  std::vector<Result<void>> done(count);
  EachAtOnce(std::min<std::size_t>(kMost, std::thread::hardware_concurrency()), count, [&](std::size_t i) {
    if (!Guarded("an import", [&] { done[i] = work(i); })) done[i] = Fail(ErrorCode::kInternal, "it went wrong");
    return done[i].has_value();
  });
  for (Result<void>& each : done) TRY(std::move(each));
  return {};
}

// The source of the files had its own limits.
constexpr FileLimits kNoLimits{.file_bytes = kMaxRecordBytes,
                               .chat_bytes = std::numeric_limits<std::uint64_t>::max(),
                               .files = std::numeric_limits<std::size_t>::max()};

}  // namespace

Result<IncomingChat> WholeChat(InteractionStore& from, const ChatId& chat) {
  auto stored = TRY(from.LoadChat(chat));
  if (!stored.damaged.empty()) return Fail(std::move(stored.damaged.front().error));
  IncomingChat whole{.summary = std::move(stored.summary), .interactions = {}, .load = [&from, chat](InteractionId id) {
                       return from.LoadInteraction(chat, id);
                     }};
  for (const Interaction& interaction : stored.interactions) whole.interactions.push_back(interaction.id);
  return whole;
}

Result<void> AddFiles(FileStore& from, IncomingChat& chat) {
  auto listing = TRY(from.List(chat.summary.id));
  if (!listing.damaged.empty()) return Fail(std::move(listing.damaged.front().error));
  for (const FileInfo& file : listing.files) chat.files.push_back(file.id);
  chat.load_file = [&from, id = chat.summary.id](const FileId& file) { return from.Get(id, file); };
  return {};
}

Result<void> AddBlobs(BlobStore& from, IncomingChat& chat) {
  chat.blobs = TRY(from.List(chat.summary.id));
  chat.load_blob = [&from, id = chat.summary.id](const std::string& digest) { return from.Get(id, digest); };
  return {};
}

Result<IncomingChat> CopyUpTo(InteractionStore& from, const ChatId& source, InteractionId last, const ChatId& chat,
                              const std::optional<std::string>& title) {
  const ChatSummary original = TRY(from.LoadSummary(source));
  const Interaction end = TRY(from.LoadInteraction(source, last));
  const Timestamp now = Now();
  IncomingChat copy{.summary = {.id = chat,
                                .title = title.value_or(original.title),
                                .created_at = now,
                                .updated_at = now,
                                .head = last,
                                .head_status = end.status,
                                .forked_from = InteractionRef{source, last}},
                    .interactions = {},
                    .load = [&from, source, chat](InteractionId id) {
                      return from.LoadInteraction(source, id).map([&](Interaction interaction) {
                        interaction.chat_id = chat;
                        if (interaction.record) interaction.record->request = std::nullopt;
                        return interaction;
                      });
                    }};
  TakeSettings(original, copy.summary);
  return copy;
}

void RemoveIncoming(const std::string& root, FileSystem& file_system) {
  const auto entries = file_system.ListDirectory(root);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    const std::string folder = root + "/" + entry.name;
    if (entry.is_directory && IsIncomingDirectory(entry.name) && IsIncoming(folder, file_system)) RemoveAll(folder);
  }
}

Result<IncomingChats> IncomingChats::Open(Options options) {
  TRY(CreateDirectories(options.file_system, options.root));
  std::unique_ptr<DirectoryLock> lock;
  if (options.lock) {
    auto acquired = TRY(DirectoryLock::Acquire(LockFile(options.root)));
    lock = std::move(acquired);
  }
  options.file_system.Confine(options.root);
  RemoveIncoming(options.root, options.file_system);
  return IncomingChats(std::move(options), std::move(lock));
}

Result<void> PutParts(const IncomingChat& chat, const IncomingChats::Options& to) {
  const ChatId& id = chat.summary.id;
  SealedFileStore file_store(
      {.root = to.root, .keys = to.keys, .file_system = to.file_system, .limits = kNoLimits, .bucket = to.bucket});
  for (const FileId& file : chat.files) {
    TRY(file_store.Put(id, TRY(chat.load_file(file))));
    TRY(CountStep(to.counter));
  }
  FileBlobStore blobs(to.root, to.keys, to.file_system);
  for (const std::string& digest : chat.blobs) {
    auto content = TRY(chat.load_blob(digest));
    TRY(blobs.Put(id, {Blob{.digest = digest, .content = std::move(content)}}));
    TRY(CountStep(to.counter));
  }
  return {};
}

bool IncomingChats::Has(const ChatId& chat) const {
  std::error_code failed;
  const auto status = std::filesystem::symlink_status(ChatDirectory(options_.root, chat), failed);
  return status.type() != std::filesystem::file_type::not_found;
}

Result<void> IncomingChats::Add(const IncomingChat& chat) const { return AddAll({&chat, 1}); }

Result<void> IncomingChats::AddAll(std::span<const IncomingChat> chats) const {
  for (const IncomingChat& chat : chats) {
    if (!Has(chat.summary.id)) continue;
    return Fail(Reason::kChatExists, "there is a chat " + chat.summary.id.str() + " already");
  }
  const std::string folder = IncomingDirectory(options_.root);
  auto added = Assemble(chats, folder).and_then([&] { return Place(chats, folder); });
  RemoveAll(folder);
  return added;
}

// Writes the chats below the folder, and reads them back.
Result<void> IncomingChats::Assemble(std::span<const IncomingChat> chats, const std::string& folder) const {
  TRY(options_.file_system.CreateDirectory(folder));
  std::vector<Additions> additions(chats.size());
  TRY(ForEachAtOnce(chats.size(),
                    [&](std::size_t i) { return Write(chats[i], folder, chats.size() == 1, additions[i]); }));
  if (options_.file_system.syncs_trees()) TRY(options_.file_system.SyncTree(folder));
  return ForEachAtOnce(chats.size(), [&](std::size_t i) { return Compare(chats[i], folder, additions[i]); });
}

Result<IncomingChats::Additions> IncomingChats::WriteAdditions(const IncomingChat& chat, bool is_alone,
                                                               FileInteractionStore& store) const {
  Additions additions;
  std::map<InteractionId, StateTotals> totals;  // of the states
  std::future<Result<std::string>> saved;       // of the interaction before
  const auto take_saved = [&]() -> Result<void> {
    if (!saved.valid()) return {};
    additions.digests.push_back(TRY(saved.get()));
    return CountStep(options_.counter);
  };
  SerialQueue disk;  // writes one while the next one is made, if no other chat has work for a second core
  for (const InteractionId number : chat.interactions) {
    const auto one = std::make_shared<const AddedInteraction>(TRY(chat.load_added(number)));
    const AgentState& state = one->interaction.final_agent_state.value();
    std::optional<StateLink> link;
    if (one->kept_messages > 0) {
      link = {.kept = one->kept_messages, .totals = Continued(totals.at(*one->interaction.parent_id), state.messages)};
    }
    totals[number] = link ? link->totals : TotalsOf(state);
    if (number == chat.summary.head) additions.head_status = one->interaction.status;
    TRY(take_saved());
    const auto save = std::make_shared<std::packaged_task<Result<std::string>()>>(
        [&store, one, link = std::move(link)] { return store.SaveAdded(one->interaction, link); });
    saved = save->get_future();
    is_alone ? disk.Post([save] { (*save)(); }) : (*save)();
  }
  TRY(take_saved());
  return additions;
}

// A record with the digest that it was written with is the same, byte for byte.
Result<void> IncomingChats::CompareAdditions(const IncomingChat& chat, const std::string& folder,
                                             const Additions& additions) const {
  const ChatFiles files(folder, MakeRecordFormat(options_.keys), options_.file_system);
  for (std::size_t i = 0; i < chat.interactions.size(); ++i) {
    const InteractionId number = chat.interactions[i];
    if (TRY(files.ReadDigest(chat.summary.id, number)) != additions.digests[i]) return Changed(number.str());
    TRY(CountStep(options_.counter));
  }
  return {};
}

Result<void> IncomingChats::Write(const IncomingChat& chat, const std::string& folder, bool is_alone,
                                  Additions& added) const {
  const ChatId& id = chat.summary.id;
  {
    auto store = TRY(FileInteractionStore::Open({.root = folder,
                                                 .keys = options_.keys,
                                                 .file_system = options_.file_system,
                                                 .lock = false,
                                                 .syncs = !options_.file_system.syncs_trees()}));
    if (chat.interactions.empty()) {
      TRY(store->CreateChat(id, {.title = chat.summary.title}));
    }
    if (chat.load_added) {
      added = TRY(WriteAdditions(chat, is_alone, *store));
    } else {
      for (const InteractionId number : chat.interactions) {
        TRY(store->SaveInteraction(TRY(chat.load(number))));
        TRY(CountStep(options_.counter));
      }
    }
    for (const auto& [number, records] : chat.journals) {
      TRY(store->BeginJournal(id, number, records));
    }
  }
  TRY(PutParts(chat, {.root = folder,
                      .keys = options_.keys,
                      .file_system = options_.file_system,
                      .counter = options_.counter,
                      .bucket = options_.bucket}));
  const ChatFiles files(folder, MakeRecordFormat(options_.keys), options_.file_system);
  if (!chat.queue.empty()) TRY(files.WriteQueue(id, chat.queue));
  // The index that the store wrote lists the interactions and counts their tokens; title, head and times are the
  // chat's own.
  auto on_disk = TRY(files.ReadChat(id));
  ChatSummary summary = chat.summary;
  if (chat.load_added) summary.head_status = added.head_status;
  if (chat.load_added && summary.title.empty()) summary.title = on_disk.index.summary.title;
  TakeSummary(on_disk.index, std::move(summary));
  const bool syncs = !options_.file_system.syncs_trees();
  TRY(files.WriteIndex(on_disk.index, syncs ? Durability::kSynced : Durability::kUnsynced));
  return syncs ? files.SyncNames(id) : Result<void>();
}

Result<void> IncomingChats::Compare(const IncomingChat& chat, const std::string& folder, const Additions& added) const {
  if (chat.load_added) TRY(CompareAdditions(chat, folder, added));
  auto store = TRY(FileInteractionStore::Open({.root = folder,
                                               .keys = options_.keys,
                                               .file_system = options_.file_system,
                                               .access = FileInteractionStore::Access::kReadOnly}));
  std::optional<Interaction> before;
  for (const InteractionId number : chat.load_added ? std::vector<InteractionId>() : chat.interactions) {
    auto meant = TRY(chat.load(number));
    const auto written = TRY(store->LoadAdded(chat.summary.id, number));
    // The messages that a state shares with its parent's were compared there.
    const std::size_t kept = written.kept_messages;
    bool is_same = true;
    if (kept > 0) {
      if (!before || before->id != meant.parent_id) before = TRY(chat.load(*meant.parent_id));
      const auto& state = before->final_agent_state;
      is_same = state && state->messages.size() == kept && meant.final_agent_state &&
                meant.final_agent_state->messages.StartsWith(state->messages);
    }
    if (!is_same || AsText(meant, kept) != AsText(written.interaction)) return Changed(number.str());
    before = std::move(meant);
    TRY(CountStep(options_.counter));
  }
  SealedFileStore file_store(
      {.root = folder, .keys = options_.keys, .file_system = options_.file_system, .bucket = options_.bucket});
  for (const FileId& file : chat.files) {
    const auto meant = TRY(chat.load_file(file));
    const auto written = TRY(file_store.Get(chat.summary.id, file));
    if (meant != written) return Changed(file.str());
    TRY(CountStep(options_.counter));
  }
  FileBlobStore blobs(folder, options_.keys, options_.file_system);
  for (const std::string& digest : chat.blobs) {
    TRY(blobs.Get(chat.summary.id, digest));  // checks the digest
    TRY(CountStep(options_.counter));
  }
  return {};
}

Result<void> IncomingChats::Place(std::span<const IncomingChat> chats, const std::string& folder) const {
  FileSystem& disk = options_.file_system;
  if (std::ranges::any_of(chats, [](const IncomingChat& chat) { return !chat.journals.empty(); })) {
    // Without this list the next start looks into every chat for journals, and finds these.
    auto removed = disk.RemoveFile(RunningFile(options_.root));
    if (!removed && !IsNotFound(removed.error())) return removed;
  }
  std::size_t placed = 0;
  Result<void> done;
  for (; done && placed < chats.size(); placed += done ? 1 : 0) {
    const ChatId& id = chats[placed].summary.id;
    done = disk.Rename(ChatDirectory(folder, id), ChatDirectory(options_.root, id));
  }
  if (done) done = disk.SyncDirectory(options_.root).and_then([&] { return disk.SyncDirectory(folder); });
  if (done) return done;
  for (const IncomingChat& chat : chats.first(placed)) {  // the caller is told that they are not there
    static_cast<void>(
        disk.Rename(ChatDirectory(options_.root, chat.summary.id), ChatDirectory(folder, chat.summary.id)));
  }
  return done;
}

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
    if (!before && IsNotFound(before.error())) {
      return Fail(IntegrityError("missing", parent, "the file is gone"));
    }
    if (!before) return Fail(std::move(before.error()));
    if (header.links.parent_digest && *header.links.parent_digest != before->digest) {
      return Fail(IntegrityError("rollback", parent, "it is not the version that the next interaction was built on"));
    }
    branch.push_back(*parent.interaction);
    header = *std::move(before);
  }
  std::ranges::reverse(branch);
  return branch;
}

// Each interaction in the version that the next was built on.
Result<IncomingChat> FileInteractionStore::CopyOfBranch(const ChatId& source, InteractionId last, const ChatId& chat,
                                                        const std::optional<std::string>& title) {
  IncomingChat copy = TRY(CopyUpTo(*this, source, last, chat, title));
  copy.interactions = TRY(BranchUpTo(source, last));
  // Unreadable files are left out: a fork copies interactions, and the files that these name may be gone anyway.
  const SealedFileStore::Options place{
      .root = options_.root, .keys = options_.keys, .file_system = options_.file_system, .bucket = options_.bucket};
  TRY(AddReadableFiles(std::make_shared<SealedFileStore>(place), source, copy));
  TRY(AddReadableBlobs(std::make_shared<FileBlobStore>(place.root, place.keys, place.file_system), source, copy));
  return copy;
}

Result<ChatSummary> FileInteractionStore::AddWhole(const IncomingChat& incoming) {
  const ChatId& chat = incoming.summary.id;
  const MutexLock turn(fork_mutex_);
  // Makes every other use of the name wait until the chat on disk can be read.
  auto held = HoldChat(chat, Missing::kLeave, Hold::kStateAndIndex);
  if (!held && held.error().code != ErrorCode::kCorruption) return Fail(std::move(held.error()));
  // A damaged chat counts, too.
  if (!held || !held->created) return ChatExists();
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

}  // namespace reprise
