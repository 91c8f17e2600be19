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
    kInOrder,  // all up to some moment, as on a journaling file system
    kAny,      // any subset; changes of one name stay in order
  };
  enum class Data {
    kNone,
    kAll,
    kAny,  // per file: nothing, all, cut off at any byte or sector, zeros at its end, or a page of zeros
  };
  Names names = Names::kNone;
  Data data = Data::kNone;
  bool zeros = true;  // kAny: missing bytes may read as zeros
};

// A disk on which recorded writes are repeated one by one, and which can lose power after each.
//
// The model: a file's bytes are safe after its Sync, the names in a directory after the directory's. Before that, any
// change may have been written or not, in any order, with two guarantees of every file system: a rename is never half
// done, and a name moved to another directory is always in at least one of the two.
class PowerLossDisk {
 public:
  PowerLossDisk();
  void Do(const DiskWrite& write);

  // The content after the power loss.
  struct State {
    std::vector<std::string> directories;      // each after its parent
    std::map<std::string, std::string> files;  // by path
    std::uint64_t Digest() const;
    std::unique_ptr<MemoryFileSystem> Mount() const;
  };
  State LosePower(Luck luck, std::mt19937& dice) const;

  // Renumbers the writes of a second recording so that they continue those done already.
  void Continue(std::vector<DiskWrite>& writes) const;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  // A name that moves between two directories.
  struct Move {
    bool arrived = false;  // durably
  };
  struct NameChange {
    std::size_t order;   // among all changes
    std::string erased;  // empty: none
    std::string set;     // empty: none
    NodePtr node{};      // what `set` names
    std::shared_ptr<Move> move{};
  };
  struct Node {
    bool is_directory = false;
    std::string content;
    std::string safe{};                                 // content at the last sync
    std::map<std::string, NodePtr> entries, durable{};  // present names, and the safe ones
    std::vector<NameChange> pending{};
  };
  struct Chosen;

  NodePtr Find(const std::string& path) const;
  void Change(const std::string& directory, NameChange change);
  static void Apply(const NameChange& change, std::map<std::string, NodePtr>& names);
  void Collect(const Node& directory, const std::string& path, const Chosen& chosen, State& state) const;
  static std::string Remains(const Node& file, const Luck& luck, std::mt19937& dice);

  NodePtr root_;
  std::vector<NodePtr> files_;  // by their number
  std::size_t changes_ = 0;
};

}  // namespace reprise
