// Histories, piece by piece: first the list of interactions, then one after the other.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "store/chat_files.h"
#include "store/file_interaction_store.h"
#include "store/store_errors.h"

namespace reprise {

// The tree of a chat's interactions as far as it is known: from the chat's state, and from headers that were read
// since.
struct FileInteractionStore::Tree {
  std::shared_ptr<ChatState> state;
  std::map<std::uint32_t, std::uint32_t> parents{};  // as in ChatState
  std::map<std::uint32_t, std::string> digests{};    // expected by the index or a child
  std::set<std::uint32_t> learned{};                 // of `parents`, those that the state lacks

  // Takes the known branch down from `number`, a bit at a time, because a branch may be long and only its end needed.
  // REQUIRES: the state's mutex is held.
  void TakeKnown(std::uint32_t number) {
    constexpr int kBit = 64;
    for (int i = 0; i < kBit && number != 0; ++i) {
      if (const auto leaf = state->index.leaves.find(number); leaf != state->index.leaves.end()) {
        digests.try_emplace(number, leaf->second);
      } else if (const auto named = state->named.find(number); named != state->named.end()) {
        digests.try_emplace(number, named->second);
      }
      const auto parent = state->parents.find(number);
      if (parent == state->parents.end()) return;
      parents.emplace(number, parent->second);
      number = parent->second;
    }
  }
  // The same for everything.
  void TakeAll() {
    parents = state->parents;
    digests = state->index.leaves;
    digests.insert(state->named.begin(), state->named.end());
  }
};

// Interactions without a checkpoint that no process runs.
std::set<std::uint32_t> FileInteractionStore::LeftOf(const ChatState& state) {
  std::set<std::uint32_t> left;
  for (const auto& [number, file] : state.journals) {
    if (!file && !state.numbers.contains(number)) left.insert(number);
  }
  return left;
}

// Why an interaction without a checkpoint cannot be read.
Error FileInteractionStore::WhyNotThere(const ChatId& chat, InteractionId id) {
  if (IsExpected(chat, id)) return MissingFile(chat, id);
  if (auto damage = JournalDamage(chat, id)) return *std::move(damage);
  return NoSuchInteraction().value();
}

// The same of one that is in an outline.
Error FileInteractionStore::WhyGone(const ChatId& chat, InteractionId id) {
  auto damage = JournalDamage(chat, id);
  return damage ? *std::move(damage) : MissingFile(chat, id);
}

// What is wrong with the journal of an interaction that did not end. No error if there is none.
std::optional<Error> FileInteractionStore::JournalDamage(const ChatId& chat, InteractionId id) {
  auto content = ReadJournal(chat, id);
  if (content || content.error().code != ErrorCode::kCorruption) return std::nullopt;
  return std::move(content.error());
}

// Interactions that an earlier process left and whose journals are damaged, so that nothing could end them.
std::vector<DamagedInteraction> FileInteractionStore::DamagedRuns(const ChatId& chat,
                                                                  const std::set<std::uint32_t>& left) {
  std::vector<DamagedInteraction> damaged;
  for (const std::uint32_t number : left) {
    const InteractionId id = InteractionId::FromNumber(number);
    if (auto damage = JournalDamage(chat, id)) {
      damaged.push_back({.id = id, .error = *std::move(damage), .parent_id = {}});
    }
  }
  return damaged;
}

// The parent of an interaction. The expected version is believed; a damaged one only shows its place in the tree.
std::optional<InteractionId> FileInteractionStore::ParentOf(const ChatId& chat, InteractionId id, Tree& tree) const {
  const std::uint32_t number = id.number();
  if (!tree.parents.contains(number)) {
    const std::lock_guard lock(tree.state->mutex);
    tree.TakeKnown(number);
  }
  if (!tree.parents.contains(number)) {
    // Parents are older, so a walk from one to the next ends.
    const auto if_older = [&](const std::optional<InteractionId>& parent) {
      return parent && *parent < id ? parent : std::nullopt;
    };
    const auto digest = tree.digests.find(number);
    const bool by_digest = digest != tree.digests.end() && files_.authenticated();
    const auto links = by_digest ? files_.ReadLinks(chat, id, digest->second) : files_.ReadLinks(chat, id);
    if (!links) return if_older(files_.ClaimedParent(chat, id));
    const auto parent = if_older(links->parent);
    if (parent && links->parent_digest) tree.digests.try_emplace(parent->number(), *links->parent_digest);
    tree.parents.emplace(number, parent ? parent->number() : 0);
    tree.learned.insert(number);
  }
  const std::uint32_t parent = tree.parents.at(number);
  return parent == 0 ? std::nullopt : std::optional(InteractionId::FromNumber(parent));
}

// Keeps what was read, so that it is not read again.
void FileInteractionStore::Remember(const Tree& tree) {
  if (tree.learned.empty()) return;
  const std::lock_guard lock(tree.state->mutex);
  for (const std::uint32_t number : tree.learned) {
    const std::uint32_t parent = tree.parents.at(number);
    tree.state->parents.try_emplace(number, parent);
    const auto digest = tree.digests.find(parent);
    if (digest != tree.digests.end()) tree.state->named.try_emplace(parent, digest->second);
  }
}

// Adds the interactions that must exist, because the index or another one names them.
void FileInteractionStore::AddExpected(const ChatId& chat, std::set<std::uint32_t>& numbers, Tree& tree) const {
  for (const auto& [number, digest] : tree.digests) numbers.insert(number);
  // From the newest down, so that a replaced file is not believed about its own parent.
  for (auto one = numbers.rbegin(); one != numbers.rend(); ++one) {
    const auto parent = ParentOf(chat, InteractionId::FromNumber(*one), tree);
    if (parent && tree.parents.contains(*one)) numbers.insert(parent->number());
  }
}

// Outlines the branch from `leaf` down, as far as `range` needs it.
void FileInteractionStore::OutlineBranch(const HistoryRange& range, std::optional<InteractionId> leaf, Tree& tree,
                                         ChatOutline& outline) const {
  for (auto at = leaf; at; at = ParentOf(outline.summary.id, *at, tree)) {
    if (!range.before || *at < *range.before) outline.entries.push_back({.id = *at});
    outline.has_before = outline.has_before || *at == *range.before;
    if (!outline.has_before && *at < *range.before) return;
    if (range.limit && outline.entries.size() > *range.limit) return;
  }
}

// Outlines these interactions and marks those that are not on the branch.
void FileInteractionStore::OutlineAll(const std::set<std::uint32_t>& numbers, std::optional<InteractionId> leaf,
                                      Tree& tree, ChatOutline& outline) const {
  std::set<std::uint32_t> branch;
  for (auto at = leaf; at && !numbers.empty() && at->number() >= *numbers.begin();) {
    branch.insert(at->number());
    at = ParentOf(outline.summary.id, *at, tree);
  }
  for (auto one = numbers.rbegin(); one != numbers.rend(); ++one) {
    outline.entries.push_back({.id = InteractionId::FromNumber(*one), .superseded = !branch.contains(*one)});
  }
}

Result<ChatOutline> FileInteractionStore::LoadOutline(const ChatId& chat, const HistoryRange& range,
                                                      const std::optional<RunningInteraction>& running) {
  ChatOutline outline{.summary = {.id = chat}};
  std::set<std::uint32_t> numbers;  // selected, on any branch
  std::set<std::uint32_t> left;     // may be damaged journals
  Tree tree;
  const bool any_branch = range.all_branches || range.is_whole();
  {
    const auto held = TRY(HoldChat(chat, Missing::kFail, Hold::kState));
    const ChatState& state = *held.state;
    left = LeftOf(state);
    tree.state = held.state;
    outline.life = held.state;
    outline.summary = state.index.summary;
    outline.has_running = running && state.numbers.contains(running->id.number());
    outline.has_before = !range.before || (running && *range.before == running->id) ||
                         (any_branch && state.numbers.contains(range.before->number()));
    if (range.is_whole()) {
      numbers = state.numbers;
      tree.TakeAll();
    } else if (any_branch) {
      const auto end = range.before ? state.numbers.lower_bound(range.before->number()) : state.numbers.end();
      for (auto one = std::make_reverse_iterator(end); one != state.numbers.rend(); ++one) {
        numbers.insert(*one);
        if (range.limit && numbers.size() > *range.limit) break;
      }
    }
  }
  std::optional<InteractionId> leaf = outline.summary.head;
  if (running && !outline.has_running) leaf = running->parent_id;
  if (leaf && files_.authenticated() && !tree.digests.contains(leaf->number())) {
    if (auto digest = ExpectedDigest(chat, *leaf)) tree.digests.emplace(leaf->number(), *std::move(digest));
  }
  if (range.is_whole()) {
    for (const auto& named : {leaf, outline.summary.head}) {
      if (named) numbers.insert(named->number());
    }
    AddExpected(chat, numbers, tree);
  }
  // Their parents are unknown, so they stand where the chat may have gone on: after its last interaction.
  if (!range.before) {
    auto damaged = DamagedRuns(chat, left);
    std::erase_if(damaged, [&](const DamagedInteraction& each) { return !any_branch && leaf && each.id < *leaf; });
    for (const DamagedInteraction& each : std::views::reverse(damaged)) outline.entries.push_back({.id = each.id});
  }
  if (any_branch) {
    OutlineAll(numbers, leaf, tree, outline);
  } else {
    OutlineBranch(range, leaf, tree, outline);
  }
  outline.more = range.limit && outline.entries.size() > *range.limit;
  if (outline.more) outline.entries.pop_back();
  std::ranges::reverse(outline.entries);
  for (ChatOutline::Entry& entry : outline.entries) {
    const auto digest = tree.digests.find(entry.id.number());
    if (digest != tree.digests.end() && files_.authenticated()) entry.digest = digest->second;
  }
  Remember(tree);
  return outline;
}

Result<InteractionJson> FileInteractionStore::LoadJson(const ChatOutline& outline, const ChatOutline::Entry& entry,
                                                       State state) {
  const ChatId& chat = outline.summary.id;
  auto json = ReadJson(chat, entry, state);
  // A newer chat of this name does not belong here.
  if (options_.access != Access::kReadOnly && FindState(chat) != outline.life) return NoSuchChat();
  return json;
}

Result<InteractionJson> FileInteractionStore::ReadJson(const ChatId& chat, const ChatOutline::Entry& entry,
                                                       State wanted) {
  const auto check = [&](const std::string& digest) -> Result<void> {
    if (entry.digest.empty() || entry.digest == digest) return {};
    return Fail(NotLastVersion(chat, entry.id));
  };
  if (wanted == State::kAdded) {
    auto stored = files_.ReadInteraction(chat, entry.id);
    if (!stored && IsNotFound(stored.error())) return Fail(WhyGone(chat, entry.id));
    if (!stored) return Fail(std::move(stored.error()));
    TRY(check(stored->digest));
    return ToInteractionJson(Added(chat, *std::move(stored)));
  }
  auto stored = files_.ReadJson(chat, entry.id);
  if (!stored && IsNotFound(stored.error())) return Fail(WhyGone(chat, entry.id));
  if (!stored) return Fail(std::move(stored.error()));
  TRY(check(stored->digest));
  InteractionJson json{.text = std::move(stored->text), .model = std::move(stored->model), .usage = stored->usage};
  const std::string_view state = std::string_view(json.text).substr(stored->state_begin, stored->state_size);
  const bool is_linked = wanted == State::kWhole && (stored->state_linked || !RawMember(state, "linked").empty());
  json.has_state = wanted == State::kWhole && state != "null";
  if (wanted == State::kWhole && !is_linked) return json;
  if (is_linked) {
    const auto whole = ReadWhole(chat, entry.id, Version::kAny);
    if (whole && whole->digest == stored->digest) {
      json.text.clear();
      AppendJson(json.text, whole->interaction);
      return json;
    }
    // The state that it continues cannot be read, but its own events can.
    json.has_state = false;
  }
  json.text.replace(stored->state_begin, stored->state_size, "null");
  return json;
}

}  // namespace reprise
