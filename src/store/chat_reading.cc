// The chats of a data folder, read from their records. What other stores keep as records is read by this, too.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/try.h"
#include "store/file_interaction_store.h"
#include "store/store_errors.h"

namespace reprise {
namespace {

constexpr std::size_t kEntryBytes = 512;  // the cost of keeping a state, besides its size

}  // namespace

// --- reading ---------------------------------------------------------------------------------------------------------

Result<FileInteractionStore::Snapshot> FileInteractionStore::TakeSnapshot(const ChatId& chat) {
  const auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kState));
  return Snapshot{.index = held->index, .numbers = held->numbers, .left = LeftOf(*held.state)};
}

template <typename Read, typename IsWhole>
auto FileInteractionStore::InOneLife(const ChatId& chat, Read read, IsWhole is_whole) -> decltype(read()) {
  for (;;) {
    const auto before = FindState(chat);
    auto result = read();
    if (is_whole(result) || options_.access == Access::kReadOnly) return result;
    // A deletion holds the chat's lock, so this waits for its end. If no state was known before, the chat may have been
    // another one as well.
    const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
    const bool gone = !held && IsNotFound(held.error()) && options_.access == Access::kServer;
    if (gone && (result || !IsNotFound(result.error()))) return NoSuchChat();
    if (!held || held->state == before) return result;
  }
}

template <typename Read>
auto FileInteractionStore::InOneLife(const ChatId& chat, Read read) -> decltype(read()) {
  return InOneLife(chat, read, [](const auto& result) { return result.has_value(); });
}

// Whether the index or a stored interaction says that this one exists.
bool FileInteractionStore::IsExpected(const ChatId& chat, InteractionId id) {
  const auto snapshot = TakeSnapshot(chat);
  if (!snapshot) return false;
  const auto& [index, numbers, left] = *snapshot;
  const bool known = numbers.contains(id.number()) || index.leaves.contains(id.number()) || index.summary.head == id;
  return known || std::any_of(numbers.upper_bound(id.number()), numbers.end(), [&](std::uint32_t number) {
           const auto links = files_.ReadLinks(chat, InteractionId::FromNumber(number));
           return links && links->parent == id;
         });
}

std::optional<std::string> FileInteractionStore::ExpectedDigest(const ChatId& chat, InteractionId id) {
  const std::uint32_t number = id.number();
  // A read-only store remembers nothing and would search the chat each time, so it knows only what the index says.
  if (options_.access == Access::kReadOnly) {
    bool cut_off = false;
    const auto index = files_.ReadIndex(chat, cut_off);
    if (!index || !*index) return std::nullopt;
    const auto leaf = (*index)->leaves.find(number);
    return leaf == (*index)->leaves.end() ? std::nullopt : std::optional(leaf->second);
  }
  std::map<std::uint32_t, std::string> leaves, named;
  std::set<std::uint32_t> numbers;
  std::uint32_t named_from = 0;
  std::shared_ptr<ChatState> asked;
  {
    const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
    if (!held) return std::nullopt;  // interactions can be read even if the index cannot
    const ChatState& state = *held->state;
    if (const auto leaf = state.index.leaves.find(number); leaf != state.index.leaves.end()) return leaf->second;
    if (const auto known = state.named.find(number); known != state.named.end()) return known->second;
    if (number + 1 >= state.named_from || options_.access == Access::kFallback) return std::nullopt;
    leaves = state.index.leaves;
    named = state.named;
    numbers = state.numbers;
    named_from = state.named_from;
    asked = held->state;
  }
  // From the newest down, so that the digest of nearly every file is known before it is read: such a file is believed
  // without decryption, and a replaced file is not believed about its own parent.
  const auto newest = numbers.lower_bound(named_from);
  for (auto one = std::make_reverse_iterator(newest); one != numbers.rend() && *one > number; ++one) {
    const InteractionId later = InteractionId::FromNumber(*one);
    const auto leaf = leaves.find(*one);
    const auto successor = named.find(*one);
    const auto links = leaf != leaves.end()       ? files_.ReadLinks(chat, later, leaf->second)
                       : successor != named.end() ? files_.ReadLinks(chat, later, successor->second)
                                                  : files_.ReadLinks(chat, later);
    if (links && links->parent && links->parent_digest)
      named.try_emplace(links->parent->number(), *links->parent_digest);
  }
  const auto found = named.find(number);
  const auto digest = found == named.end() ? std::nullopt : std::optional(found->second);
  const auto held = HoldChat(chat, Missing::kFail, Hold::kState);
  if (held && held->state == asked && (*held)->named_from > number + 1) {
    (*held)->named.merge(named);
    (*held)->named_from = number + 1;
  }
  return digest;
}

Result<void> FileInteractionStore::CheckVersion(const ChatId& chat, InteractionId id, const std::string& digest) {
  if (!files_.authenticated()) return {};
  const auto expected = ExpectedDigest(chat, id);
  if (!expected || *expected == digest) return {};
  return Fail(NotLastVersion(chat, id));
}

// A source that was deleted meanwhile is neither damage nor a failure of the disk.
Result<ChatSummary> FileInteractionStore::ForkChat(const ChatId& source, InteractionId last, const ChatId& chat,
                                                   const std::optional<std::string>& title) {
  TRY(CheckWritable());
  TRY(LoadSummary(source));  // so that its life is known, and a failure of the disk is not taken for another one
  return InOneLife(
      source, [&] { return StoreCore::ForkChat(source, last, chat, title); },
      [](const Result<ChatSummary>& copied) {
        return copied || IsNotFound(copied.error()) || copied.error().Is(Reason::kChatExists);
      });
}

Result<std::optional<AgentState>> FileInteractionStore::LoadFinalState(const ChatId& chat, InteractionId id) {
  // Taken out, because the turn that asks for it will save the next one.
  if (auto kept = short_states_.Take(chat.str()); kept && kept->interaction == id) {
    if (files_.IsAsWritten(chat, id, kept->digest, kept->file_hash)) return std::move(kept->state);
  }
  return LoadInteraction(chat, id).map(
      [](Interaction interaction) { return std::move(interaction.final_agent_state); });
}

Result<Interaction> FileInteractionStore::LoadInteraction(const ChatId& chat, InteractionId id) {
  return ReadOne(chat, id, [&] {
    return ReadWhole(chat, id, Version::kExpected).map([](StoredInteraction stored) {
      return std::move(stored.interaction);
    });
  });
}

Result<AddedInteraction> FileInteractionStore::LoadAdded(const ChatId& chat, InteractionId id) {
  return ReadOne(chat, id, [&] {
    return ReadExpected(chat, id).map([&](StoredInteraction stored) { return Added(chat, std::move(stored)); });
  });
}

template <typename Read>
auto FileInteractionStore::ReadOne(const ChatId& chat, InteractionId id, Read read) -> decltype(read()) {
  return InOneLife(chat, [&]() -> decltype(read()) {
    auto stored = read();
    if (stored || !IsNotFound(stored.error())) return stored;
    return Fail(WhyNotThere(chat, id));
  });
}

Result<StoredInteraction> FileInteractionStore::ReadExpected(const ChatId& chat, InteractionId id) {
  auto stored = TRY(files_.ReadInteraction(chat, id));
  TRY(CheckVersion(chat, id, stored.digest));
  return stored;
}

// The record of a long state names its additions. A state in a single file is compared with its parent's.
AddedInteraction FileInteractionStore::Added(const ChatId& chat, StoredInteraction stored) {
  Interaction& interaction = stored.interaction;
  if (stored.state_link) return {std::move(interaction), stored.state_link->kept};
  if (!interaction.parent_id || !interaction.final_agent_state) return {std::move(interaction)};
  const auto parent = ReadWhole(chat, *interaction.parent_id, Version::kAny);
  const bool is_known = parent && parent->interaction.final_agent_state &&
                        (!stored.links.parent_digest || *stored.links.parent_digest == parent->digest);
  if (!is_known) return {std::move(interaction)};
  return AddedTo(*parent->interaction.final_agent_state, std::move(interaction));
}

Result<ChatSummary> FileInteractionStore::LoadSummary(const ChatId& chat) {
  const auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kState));
  return held->index.summary;
}

// A hundred thousand chats that are only listed would fill the memory with what a running chat needs. A chat with
// something to repair is loaded as a whole.
Result<ChatSummary> FileInteractionStore::LoadListed(const ChatId& chat) {
  if (FindState(chat)) return LoadSummary(chat);
  auto on_disk = TRY(files_.ReadChat(chat));
  const bool is_plain = on_disk.has_index && !on_disk.index_unreadable && !on_disk.unproven && on_disk.journals.empty();
  if (!is_plain) return LoadSummary(chat);
  return std::move(on_disk.index.summary);
}

std::shared_ptr<ChatList> FileInteractionStore::MakeList() {
  ChatList::Source source{.list = [this]() -> Result<std::vector<ChatVersion>> {
                            const auto chats = files_.ListChats();
                            const bool is_new =
                                !chats && IsNotFound(chats.error()) && options_.access == Access::kFallback;
                            if (!chats && !is_new) return Fail(chats.error());
                            if (is_new) return std::vector<ChatVersion>();
                            return std::vector<ChatVersion>(chats->begin(), chats->end());
                          },
                          .load = [this](const ChatId& chat) { return LoadListed(chat); }};
  if (options_.access == Access::kServer) source.watch = [this] { return options_.file_system.Watch(options_.root); };
  return std::make_shared<ChatList>(std::move(source));
}

// Another process writes the folder that is only read, so it is listed anew each time.
std::shared_ptr<ChatList> FileInteractionStore::List() {
  return options_.access == Access::kServer ? list_ : MakeList();
}

Result<std::optional<AgentState>> FileInteractionStore::LoadPreviousState(const ChatId& chat, InteractionId id) {
  return InOneLife(chat, [&] { return ReadPreviousState(chat, id); });
}

Result<std::optional<AgentState>> FileInteractionStore::ReadPreviousState(const ChatId& chat, InteractionId id) {
  const auto links = files_.ReadLinks(chat, id);
  if (!links && IsNotFound(links.error())) return Fail(WhyNotThere(chat, id));
  if (!links) return Fail(links.error());
  if (!links->parent) return std::optional<AgentState>();
  auto parent = ReadWhole(chat, *links->parent, Version::kAny);
  if (!parent && IsNotFound(parent.error())) return Fail(MissingFile(chat, *links->parent));
  if (!parent) return Fail(std::move(parent.error()));
  if (links->parent_digest && *links->parent_digest != parent->digest) {
    // Unless this one was replaced and names another history.
    const auto own = files_.ReadDigest(chat, id);
    TRY(own ? CheckVersion(chat, id, *own) : Result<void>());
    return Fail(IntegrityError("rollback", {.chat = chat, .interaction = *links->parent},
                               "it is not the version that the next interaction was built on"));
  }
  return std::move(parent->interaction.final_agent_state);
}

Result<Chat> FileInteractionStore::LoadChat(const ChatId& chat) {
  return InOneLife(
      chat, [&] { return ReadAll(chat); }, [](const Result<Chat>& read) { return read && read->damaged.empty(); });
}

Result<Chat> FileInteractionStore::ReadAll(const ChatId& chat) {
  const auto snapshot = TRY(TakeSnapshot(chat));
  const auto& [index, numbers, left] = snapshot;
  // Without a lock: a stored interaction does not change, and a long history must not hold up a save.
  Chat result{.summary = index.summary, .interactions = {}, .damaged = DamagedRuns(chat, left)};
  std::vector<StoredInteraction> stored;
  for (const std::uint32_t number : numbers) {
    const InteractionId id = InteractionId::FromNumber(number);
    auto read = files_.ReadInteraction(chat, id);
    if (read) {
      if (read->state_link) read->interaction.final_agent_state.reset();
      stored.push_back(*std::move(read));
    } else if (read.error().code == ErrorCode::kCorruption) {
      result.damaged.push_back(
          {.id = id, .error = std::move(read.error()), .parent_id = files_.ClaimedParent(chat, id)});
    } else if (IsNotFound(read.error())) {
      result.damaged.push_back({.id = id, .error = MissingFile(chat, id), .parent_id = {}});
    } else {
      return Fail(std::move(read.error()));
    }
    TRY(CountStep(options_.reads));
  }
  CheckHistory(index, stored, result);
  for (StoredInteraction& one : stored) {
    const bool damaged = std::ranges::any_of(
        result.damaged, [&](const DamagedInteraction& other) { return other.id == one.interaction.id; });
    if (!damaged) result.interactions.push_back(std::move(one.interaction));
  }
  return result;
}

void FileInteractionStore::CheckHistory(const ChatIndex& index, const std::vector<StoredInteraction>& stored,
                                        Chat& chat) const {
  std::map<InteractionId, FoundRecord> found;
  for (const StoredInteraction& one : stored) found[one.interaction.id] = {.links = one.links, .digest = one.digest};
  // In a fallback folder the parents are elsewhere.
  auto defects = CompareRecords(chat.summary.id, &index, found, files_.authenticated(),
                                /*compares_parents=*/options_.access != Access::kFallback);
  for (const DamagedInteraction& known : chat.damaged) defects.erase(known.id);
  for (auto& [id, error] : defects) {
    chat.damaged.push_back(
        {.id = id, .error = std::move(error), .parent_id = files_.ClaimedParent(chat.summary.id, id)});
  }
  std::ranges::sort(chat.damaged, {}, &DamagedInteraction::id);
}

// --- long states -----------------------------------------------------------------------------------------------------

Result<StoredInteraction> FileInteractionStore::ReadWhole(const ChatId& chat, InteractionId id, Version version) {
  auto stored = version == Version::kExpected ? ReadExpected(chat, id) : files_.ReadInteraction(chat, id);
  if (!stored || !stored->state_link) return stored;
  const StateTotals totals = stored->state_link->totals;
  std::vector<Messages> parts;  // newest first; each was added to the next
  auto known = long_states_.Find(stored->digest);
  const bool is_kept = known.has_value();
  AgentState& state = *stored->interaction.final_agent_state;
  std::optional<StateLink> link = stored->state_link;
  RecordLinks links = stored->links;
  InteractionId child = id;
  // When a chat is read in order, the state before this one is kept already.
  auto before = known || !links.parent_digest ? std::nullopt : long_states_.Find(*links.parent_digest);
  if (!known && !before) known = ShortenedTo(chat, totals);
  if (!known) parts.push_back(std::move(state.messages));
  if (before) known = std::move(before);
  while (link && !known) {
    const auto unusable = [&](std::string_view kind, std::string_view what) {
      return Fail(IntegrityError(kind, {.chat = chat, .interaction = child}, what));
    };
    // Parents are older, so this ends.
    if (!links.parent || *links.parent >= child) return unusable("auth", "its state continues that of no interaction");
    child = *links.parent;
    auto parent = files_.ReadInteraction(chat, child);
    if (!parent && IsNotFound(parent.error())) return Fail(MissingFile(chat, child));
    if (!parent) return parent;
    if (links.parent_digest && *links.parent_digest != parent->digest) {
      return unusable("rollback", "it is not the version that the next interaction was built on");
    }
    known = long_states_.Find(parent->digest);
    if (!known && !parent->interaction.final_agent_state) return unusable("auth", "it has no state to continue");
    if (!known) parts.push_back(std::move(parent->interaction.final_agent_state->messages));
    link = parent->state_link;
    links = std::move(parent->links);
  }
  state.messages = known ? known->state->messages : Messages();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) state.messages.Append(*part, 0, part->size());
  if (state.messages.size() != totals.messages) {
    return Fail(IntegrityError("auth", {.chat = chat, .interaction = id}, "its state is not whole"));
  }
  if (!is_kept) KeepLong(chat, stored->digest, state, totals);
  stored->state_link.reset();
  return stored;
}

// An earlier state of a branch is usually the beginning of a later one that is kept.
std::optional<KnownState> FileInteractionStore::ShortenedTo(const ChatId& chat, const StateTotals& totals) const {
  for (const KnownState& later : long_states_.FindAll(chat.str())) {
    if (!BeginsWith(*later.state, totals)) continue;
    auto beginning = std::make_shared<AgentState>();
    beginning->messages = later.state->messages;
    beginning->messages.Truncate(totals.messages);
    return KnownState{.totals = totals, .state = std::move(beginning)};
  }
  return std::nullopt;
}

std::optional<KnownState> FileInteractionStore::ParentState(const ChatId& chat, const RecordLinks& links) {
  auto known = links.parent_digest ? long_states_.Find(*links.parent_digest) : std::nullopt;
  return known ? known : files_.ReadParentState(chat, links);
}

void FileInteractionStore::KeepState(const Interaction& interaction, const WrittenInteraction& written) {
  if (options_.access != Access::kServer || !interaction.final_agent_state) return;
  const AgentState& state = *interaction.final_agent_state;
  if (written.state_link) return KeepLong(interaction.chat_id, written.digest, state, written.state_link->totals);
  if (!written.verbatim || written.bytes > 2 * kFullStateBytes) return;
  short_states_.Put(
      interaction.chat_id.str(),
      {.interaction = interaction.id, .digest = written.digest, .file_hash = written.file_hash, .state = state},
      kEntryBytes + MemoryOf(state));
}

// The last used states of a chat are kept: for the next turn, for an edit of the last one, and for branches that are
// read side by side. They share their messages.
void FileInteractionStore::KeepLong(const ChatId& chat, const std::string& digest, const AgentState& state,
                                    StateTotals totals) {
  auto copy = std::make_shared<const AgentState>(state);
  const std::size_t bytes = kEntryBytes + totals.bytes + totals.messages * sizeof(Message);
  long_states_.Put(digest, {.totals = std::move(totals), .state = std::move(copy)}, bytes, chat.str());
}

std::size_t FileInteractionStore::kept_bytes() const { return long_states_.bytes() + short_states_.bytes(); }

}  // namespace reprise
