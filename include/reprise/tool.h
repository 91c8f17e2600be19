#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// What a model is told about a tool.
struct ToolSpec {
  std::string name;
  std::string description;
  std::string parameters;  // JSON Schema (draft-07) text of the arguments, an object schema
};

enum class Risk { kLow, kMedium, kHigh };

struct ToolTraits {
  ToolSpec spec;
  bool read_only = true;           // changes nothing outside the agent
  bool idempotent = true;          // may run again after a crash
  bool requires_approval = false;  // asks first unless the configuration says otherwise
  Risk risk = Risk::kLow;
  std::string approval_reason;  // shown with the request: "runs a shell command"
};

// What one execution may use.
struct ToolContext {
  std::stop_token stop;  // must end the tool within 50 ms, its processes included
  std::chrono::milliseconds timeout{60'000};
  // Live output for tool_output_delta; may be empty. Any bytes; called from the tool's thread.
  std::function<void(std::string_view)> on_output;
};

// What the model gets to read. Always valid UTF-8.
struct ToolOutcome {
  std::string output;
  bool is_error = false;
};

// Something an agent can do. Thread-safe. A tool's failures are outcomes that the model reads (is_error), not Errors.
class Tool {
 public:
  virtual ~Tool() = default;
  virtual const ToolTraits& traits() const = 0;
  // `arguments` is a JSON object that satisfies the schema.
  virtual ToolOutcome Run(std::string_view arguments, const ToolContext& context) = 0;
};

// The tools of a server. Immutable after construction, thread-safe.
class ToolRegistry {
 public:
  virtual ~ToolRegistry() = default;
  // Null if there is none of that name (or it is denied by configuration).
  virtual Tool* Find(std::string_view name) const = 0;
  // Checks `arguments` (raw text from a model) against the tool's schema. An empty text counts as {}. The error's
  // message says what is wrong in words a model can mend: kInvalidArgument.
  virtual Result<void> Validate(const Tool& tool, std::string_view arguments) const = 0;
  // In order of registration.
  virtual const std::vector<Tool*>& tools() const = 0;
  virtual const std::vector<ToolSpec>& specs() const = 0;
  virtual bool RequiresApproval(const Tool& tool) const = 0;
};

}  // namespace reprise
