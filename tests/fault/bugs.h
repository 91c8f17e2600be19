#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reprise/file_system.h"
#include "reprise/interaction_store.h"

namespace reprise {

// A bug, planted between the parts of the product.
struct Bug {
  std::string name;
  std::function<std::unique_ptr<FileSystem>(FileSystem&)> disk{};                // while the server works
  std::function<std::unique_ptr<InteractionStore>(InteractionStore&)> store{};   // while the server works
  std::function<std::unique_ptr<InteractionStore>(InteractionStore&)> reader{};  // at the start after the power loss
};

// Use them one after the other: making a bug discards the state of the one before.
std::vector<Bug> AllBugs();

}  // namespace reprise
