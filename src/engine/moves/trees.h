#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/moves/session.h"

namespace reprise {

// A message in a tree of messages.
struct MessageNode {
  std::string id, parent;             // parent is empty, or names no node: it begins the chat
  std::vector<MovedMessage> steps{};  // empty: it says nothing
};

// Reads the records of a format that stores messages in a tree. `Take` gives the same for a record each time.
class NodeReader {
 public:
  virtual ~NodeReader() = default;
  virtual std::vector<MessageNode> Take(const Json& json) = 0;

  std::size_t record = 0;  // the number of the one that Take gets
  SessionFacts facts;
  LeftOut left_out;
  std::string model;         // that answers at the beginning; empty: unknown
  bool are_members = false;  // of an object, of which the last one of an id counts
  bool finds_calls = false;  // a result that says no call is of the last one before it
};

// A session with the steps of all branches, parents first; those of a message that no root leads to (a circle) are
// counted. Where an answer was made again, the prompt and what led there is repeated, because each branch is whole. Of
// a large session only the order is in memory, and what records of several messages hold. The failures of reading them.
Result<std::unique_ptr<MovedSession>> OpenTree(Records records, std::unique_ptr<NodeReader> reader);

}  // namespace reprise
