#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/interaction_store.h"

namespace reprise {

// A deliberate fault, put between the parts of the product.
struct Bug {
  std::string name;
  std::function<std::unique_ptr<FileSystem>(FileSystem&)> disk{};                // while the server works
  std::function<std::unique_ptr<InteractionStore>(InteractionStore&)> store{};   // while the server works
  std::function<std::unique_ptr<InteractionStore>(InteractionStore&)> reader{};  // at the start after the power loss
  bool claims_reach = false;  // the disk says that its syncs reach more than themselves, and they do not
};

// All bugs, each with a state of its own.
std::vector<Bug> AllBugs();

}  // namespace reprise
