#include "fault/power_loss.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/atomic_write.h"

namespace reprise {
namespace {

constexpr std::size_t kSector = 512, kPage = 4096;

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string Join(const std::string& directory, const std::string& name) {
  return (directory == "/" ? "" : directory) + "/" + name;
}
// From 0 to `below` - 1.
std::size_t Roll(std::mt19937& dice, std::size_t below) {
  return std::uniform_int_distribution<std::size_t>(0, below - 1)(dice);
}
void Require(const Result<void>& done) {
  if (!done) throw std::logic_error(done.error().message + " " + done.error().detail);
}

}  // namespace

// The choice of pending changes that are written.
struct PowerLossDisk::Chosen {
  Luck luck;
  std::mt19937& dice;
  std::size_t moment = 0;                 // for kInOrder
  std::map<const Node*, unsigned> seeds;  // for kAny: each directory's own dice, because a move looks into two
  std::set<const Move*> arrived{};

  bool Takes(const NameChange& change, std::mt19937& own) const {
    if (luck.names == Luck::Names::kAny) return Roll(own, 2) == 0;
    if (luck.names == Luck::Names::kInOrder) return change.order < moment;
    return luck.names == Luck::Names::kAll;
  }
};

PowerLossDisk::PowerLossDisk(SyncReach reach) : reach_(reach), root_(std::make_shared<Node>()) {
  root_->is_directory = true;
}

PowerLossDisk::NodePtr PowerLossDisk::Find(const std::string& path) const {
  if (path == "/") return root_;
  const NodePtr parent = Find(ParentDirectory(path));
  const auto found = parent->entries.find(BaseName(path));
  if (found == parent->entries.end()) throw std::logic_error("no such file: " + path);
  return found->second;
}

void PowerLossDisk::Apply(const NameChange& change, std::map<std::string, NodePtr>& names) {
  if (!change.erased.empty()) names.erase(change.erased);
  if (!change.set.empty()) names.insert_or_assign(change.set, change.node);
}

void PowerLossDisk::Change(const std::string& directory, NameChange change) {
  change.order = changes_++;
  const NodePtr node = Find(directory);
  if (change.node) {
    change.node->parent = node;
    change.node->is_new = true;
  }
  Apply(change, node->entries);
  node->pending.push_back(std::move(change));
}

void PowerLossDisk::MakeSafe(Node& directory) {
  for (const NameChange& change : std::exchange(directory.pending, {})) {
    Apply(change, directory.durable);
    if (change.move && change.node) change.move->arrived = true;
  }
}

void PowerLossDisk::MakeAllSafe(Node& directory) {
  safe_changes_ = changes_;
  MakeSafe(directory);
  for (const auto& [name, node] : directory.entries) {
    if (node->is_directory) MakeAllSafe(*node);
  }
}

void PowerLossDisk::Do(const DiskWrite& write) {
  using Kind = DiskWrite::Kind;
  switch (write.kind) {
    case Kind::kCreate:
      files_.resize(std::max(files_.size(), write.file + 1));
      files_[write.file] = std::make_shared<Node>();
      return Change(ParentDirectory(write.path),
                    {.order = 0, .erased = {}, .set = BaseName(write.path), .node = files_[write.file]});
    case Kind::kAppend:
      files_.at(write.file)->content += write.data;
      return;
    case Kind::kSync:
      files_.at(write.file)->safe = files_.at(write.file)->content;
      if (reach_ == SyncReach::kAllNames) MakeAllSafe(*root_);
      for (NodePtr node = files_[write.file]; reach_ == SyncReach::kNewNames && node->is_new;) {
        node->is_new = false;
        node = node->parent.lock();
        MakeSafe(*node);
      }
      return;
    case Kind::kRename: {
      const std::string from = ParentDirectory(write.path), to = ParentDirectory(write.to);
      const NodePtr node = Find(write.path);
      if (from == to) {
        return Change(to, {.order = 0, .erased = BaseName(write.path), .set = BaseName(write.to), .node = node});
      }
      const auto move = std::make_shared<Move>();
      Change(to, {.order = 0, .erased = {}, .set = BaseName(write.to), .node = node, .move = move});
      return Change(from, {.order = 0, .erased = BaseName(write.path), .set = {}, .node = {}, .move = move});
    }
    case Kind::kSyncDirectory:
      return reach_ == SyncReach::kAllNames ? MakeAllSafe(*root_) : MakeSafe(*Find(write.path));
    case Kind::kCreateDirectory: {
      const NodePtr node = std::make_shared<Node>();
      node->is_directory = true;
      return Change(ParentDirectory(write.path), {.order = 0, .erased = {}, .set = BaseName(write.path), .node = node});
    }
    case Kind::kRemove:
      return Change(ParentDirectory(write.path), {.order = 0, .erased = BaseName(write.path), .set = {}});
  }
}

// The bytes of a file after a power loss. Unsynced bytes may be missing or read as zeros.
std::string PowerLossDisk::Remains(const Node& file, const Luck& luck, std::mt19937& dice) {
  if (luck.data == Luck::Data::kAll || file.content.size() == file.safe.size()) return file.content;
  if (luck.data == Luck::Data::kNone) return file.safe;
  const std::size_t synced = file.safe.size();
  const std::size_t size = file.content.size(), unsynced = size - synced;
  if (unsynced == 0) return file.content;
  const auto some = [&] { return synced + Roll(dice, unsynced + 1); };
  switch (Roll(dice, luck.zeros ? 6 : 4)) {
    case 0:
      return file.content.substr(0, synced);
    case 1:
      return file.content;
    case 2:
      return file.content.substr(0, some());
    case 3:
      return file.content.substr(0, std::max(synced, some() / kSector * kSector));
    case 4: {  // the file has grown, but its last sectors were not written
      const std::size_t written = std::max(synced, some() / kSector * kSector);
      return file.content.substr(0, written) + std::string(size - written, '\0');
    }
    default: {  // one page was not written, later ones were
      const std::size_t begin = std::max(synced, (synced + Roll(dice, unsynced)) / kPage * kPage);
      const std::size_t end = std::min(size, (begin / kPage + 1) * kPage);
      std::string bytes = file.content;
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end),
                '\0');
      return bytes;
    }
  }
}

void PowerLossDisk::Collect(const Node& directory, const std::string& path, const Chosen& chosen, State& state) const {
  auto names = directory.durable;
  std::mt19937 own(chosen.seeds.contains(&directory) ? chosen.seeds.at(&directory) : 0);
  for (const NameChange& change : directory.pending) {
    if (!chosen.Takes(change, own)) continue;
    const bool leaves = change.move && !change.node;
    if (leaves && !change.move->arrived && !chosen.arrived.contains(change.move.get())) continue;
    Apply(change, names);
  }
  for (const auto& [name, node] : names) {
    const std::string child = Join(path, name);
    if (node->is_directory) {
      state.directories.push_back(child);
      Collect(*node, child, chosen, state);
    } else {
      state.files[child] = Remains(*node, chosen.luck, chosen.dice);
    }
  }
}

PowerLossDisk::State PowerLossDisk::LosePower(Luck luck, std::mt19937& dice) const {
  if (reach_ == SyncReach::kAllNames && luck.names == Luck::Names::kAny) luck.names = Luck::Names::kInOrder;
  Chosen chosen{
      .luck = luck, .dice = dice, .moment = safe_changes_ + Roll(dice, changes_ - safe_changes_ + 1), .seeds = {}};
  const std::function<void(const Node&)> choose = [&](const Node& directory) {
    const unsigned seed = chosen.seeds[&directory] = static_cast<unsigned>(dice());
    std::mt19937 own(seed);
    for (const NameChange& change : directory.pending) {
      if (chosen.Takes(change, own) && change.move && change.node) chosen.arrived.insert(change.move.get());
    }
    for (const auto& [name, node] : directory.entries) {
      if (node->is_directory && !chosen.seeds.contains(node.get())) choose(*node);
    }
  };
  choose(*root_);
  State state{.directories = {}, .files = {}, .reach = reach_};
  Collect(*root_, "/", chosen, state);
  return state;
}

void PowerLossDisk::Continue(std::vector<DiskWrite>& writes) const {
  for (DiskWrite& write : writes) write.file += files_.size();
}

std::uint64_t PowerLossDisk::State::Digest() const {
  std::uint64_t digest = 14695981039346656037u;
  const auto add = [&](std::string_view text) {
    digest = (digest ^ std::hash<std::string_view>{}(text)) * 1099511628211u;
  };
  for (const std::string& path : directories) add(path);
  for (const auto& [path, content] : files) add(path), add(content);
  return digest;
}

std::unique_ptr<MemoryFileSystem> PowerLossDisk::State::Mount() const {
  auto disk = std::make_unique<MemoryFileSystem>(reach);
  for (const std::string& path : directories) {
    Require(disk->CreateDirectory(path).map([](bool) {}));
    Require(disk->SyncDirectory(ParentDirectory(path)));
  }
  for (const auto& [path, content] : files) {
    auto file = disk->CreateFile(path);
    Require(file.map([](const auto&) {}));
    Require((*file)->Append(content));
    Require((*file)->Sync());
    Require(disk->SyncDirectory(ParentDirectory(path)));
  }
  return disk;
}

}  // namespace reprise
