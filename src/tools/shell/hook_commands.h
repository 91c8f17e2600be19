#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/hooks.h"

namespace reprise {

// Hooks that are commands: each gets a JSON object on its stdin (schemas/hook_input.schema.json) and prints one
// (schemas/hook_output.schema.json). It runs in `directory` with a clean environment, and no process of it outlives it.
// Its PATH omits folders in `directory`, where an agent could put programs.
class HookCommands final : public Hooks {
 public:
  HookCommands(std::vector<HookOptions> hooks, std::string directory);

  bool Wants(HookEvent event) const override;
  Verdict Run(HookFacts facts, const std::stop_token& stop) override;

 private:
  const std::vector<HookOptions> hooks_;
  const std::string directory_;
  const std::vector<std::string> environment_;
};

// "before_tool" and the like.
std::string_view HookEventName(HookEvent event);

}  // namespace reprise
