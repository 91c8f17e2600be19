#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/moves/session.h"

namespace reprise {

// A message in a tree of messages.
struct MessageNode {
  std::string id, parent;             // parent is empty, or names no node: it begins the chat
  std::vector<MovedMessage> steps{};  // empty: it says nothing
};

// The steps of all branches, parents first; those of one that no root leads to (a circle) are counted. Where an answer
// was made again, the prompt and what led there is repeated, because each branch is whole.
std::vector<MovedMessage> StepsOfTree(std::vector<MessageNode> nodes, LeftOut& left_out);

}  // namespace reprise
