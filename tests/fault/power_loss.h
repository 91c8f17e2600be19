#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fault/write_recorder.h"
#include "support/memory_file_system.h"

namespace reprise {

// Which unsynced changes have reached the disk when the power fails.
struct Luck {
  enum class Names {
    kNone,
    kAll,
    kInOrder,  // all up to some moment, as with a journaling file system
    kAny,      // any subset, but in order for each name
  };
  enum class Data {
    kNone,
    kAll,
    kAny,  // for each file: nothing, all, cut off at any byte or sector, zeros at its end, or a page of zeros
  };
  Names names = Names::kNone;
  Data data = Data::kNone;
  bool zeros = true;  // for kAny: missing bytes may read as zeros
};

// A disk that repeats recorded writes one by one, and can lose its power after each.
//
// The model: a file's bytes are safe after its Sync, and a directory's names after the directory's. Before that any
// changes may have been written, in any order, within two limits that every file system keeps: a rename is done or not
// done, never half; a name moved to another directory is always in at least one of the two.
//
// A sync makes more safe if it reaches more (SyncReach). If it reaches all names, those not yet safe are written in
// their order.
class PowerLossDisk {
 public:
  explicit PowerLossDisk(SyncReach reach);
  void Do(const DiskWrite& write);

  // The content of the disk after a power loss.
  struct State {
    std::vector<std::string> directories;      // each after its parent
    std::map<std::string, std::string> files;  // by path
    SyncReach reach = SyncReach::kItself;
    std::uint64_t Digest() const;
    std::unique_ptr<MemoryFileSystem> Mount() const;
  };
  State LosePower(Luck luck, std::mt19937& dice) const;

  // Renumbers the files of a second recording's writes to continue those done already.
  void Continue(std::vector<DiskWrite>& writes) const;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  // A move of a name between two directories.
  struct Move {
    bool arrived = false;  // durably
  };
  struct NameChange {
    std::size_t order;   // among all changes
    std::string erased;  // empty: none
    std::string set;     // empty: none
    NodePtr node{};      // of `set`
    std::shared_ptr<Move> move{};
  };
  struct Node {
    bool is_directory = false;
    std::string content;
    std::string safe{};                                 // content as of its last sync
    std::map<std::string, NodePtr> entries, durable{};  // present and safe names
    std::vector<NameChange> pending{};
    std::weak_ptr<Node> parent{};  // where its name was set last
    bool is_new = false;           // since its last sync, or that of a file below it
  };
  struct Chosen;

  NodePtr Find(const std::string& path) const;
  void Change(const std::string& directory, NameChange change);
  static void MakeSafe(Node& directory);
  void MakeAllSafe(Node& directory);  // with the directories below it
  static void Apply(const NameChange& change, std::map<std::string, NodePtr>& names);
  void Collect(const Node& directory, const std::string& path, const Chosen& chosen, State& state) const;
  static std::string Remains(const Node& file, const Luck& luck, std::mt19937& dice);

  const SyncReach reach_;
  NodePtr root_;
  std::vector<NodePtr> files_;                  // by their number
  std::size_t changes_ = 0, safe_changes_ = 0;  // `safe_changes_`: if syncs reach all names: those before the last one
};

}  // namespace reprise
