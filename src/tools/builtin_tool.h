#pragma once

#include <utility>

#include "reprise/tool.h"

namespace reprise {

// A tool whose traits are known when it is made.
class BuiltinTool : public Tool {
 public:
  explicit BuiltinTool(ToolTraits traits) : traits_(std::move(traits)) {}
  const ToolTraits& traits() const override { return traits_; }
  // As in traits(), but never cost anything (traits() of run_shell looks for the sandbox first).
  const ToolSpec& spec() const { return traits_.spec; }
  bool asks_by_default() const { return traits_.requires_approval; }

 protected:
  const ToolTraits& fixed_traits() const { return traits_; }

 private:
  const ToolTraits traits_;
};

inline ToolOutcome ToolFailure(std::string message) { return {.output = std::move(message), .is_error = true}; }

}  // namespace reprise
