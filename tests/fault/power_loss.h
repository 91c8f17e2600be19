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

// Which of the things that were not synced the disk has got when the power fails.
struct Luck {
  enum class Names {
    kNone,
    kAll,
    kInOrder,  // all up to some moment, as a journaling file system keeps them
    kAny,      // any subset; what concerns one name stays in order
  };
  enum class Data {
    kNone,
    kAll,
    kAny,  // each file by itself: nothing, all, cut off at any byte or sector, zeros at its end, or a page of zeros
  };
  Names names = Names::kNone;
  Data data = Data::kNone;
  bool zeros = true;  // kAny: what is not there may read as zeros
};

// A disk to which recorded writes are done again, one by one, and which can lose its power after each.
//
// The model: the bytes of a file are safe with its Sync, the names in a directory with the directory's. Before that
// anything may have been written or not, in any order, but for two things that every file system keeps: a rename is
// done or not done, never half; a name moved to another directory is never in neither of the two.
class PowerLossDisk {
 public:
  PowerLossDisk();
  void Do(const DiskWrite& write);

  // What is found afterwards.
  struct State {
    std::vector<std::string> directories;      // each behind its parent
    std::map<std::string, std::string> files;  // by path
    std::uint64_t Digest() const;
    std::unique_ptr<MemoryFileSystem> Mount() const;
  };
  State LosePower(Luck luck, std::mt19937& dice) const;

  // Makes these writes, of a second recording, follow on those that were done already.
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
    std::string safe{};                                 // the content of its last sync
    std::map<std::string, NodePtr> entries, durable{};  // the names now, and those that are safe
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
