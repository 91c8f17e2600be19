#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace reprise {

enum class HookEvent {
  kBeforeInteraction,
  kAfterInteraction,
  kBeforeModel,
  kAfterModel,
  kBeforeTool,
  kAfterTool,
  kBeforeEnd,
};

// A command that decides on, or observes, an agent's actions.
struct HookOptions {
  HookEvent event = HookEvent::kBeforeTool;
  std::string tool = "*";              // for tool events; a pattern (fnmatch(3))
  std::vector<std::string> command{};  // the program (a path, or found in PATH) and its arguments
  std::chrono::milliseconds timeout{5000};
};

// The input of a hook. Each event sets its own members.
struct HookFacts {
  HookEvent event = HookEvent::kBeforeTool;
  std::string chat_id{}, interaction_id{};
  std::string user_message{};          // interaction events, before_end
  std::string status{};                // after_interaction
  std::uint32_t round_index = 0;       // the other events
  std::string model{};                 // model events: the provider's name for it
  std::string text{};                  // after_model, before_end: the model's text
  int times_sent_back = 0;             // before_end: in this interaction, before
  std::string call_id{}, tool_name{};  // tool events
  std::string arguments{};             // likewise; JSON object text
  std::string output{};                // after_tool
  bool is_error = false;               // likewise
};

// The hooks of the configuration. Thread-safe.
class Hooks {
 public:
  virtual ~Hooks() = default;
  // Whether any hook is for this event. Cheap.
  virtual bool Wants(HookEvent event) const = 0;
  struct Verdict {
    std::optional<std::string> denied{};     // the reason, for the model and people; valid UTF-8
    std::optional<std::string> arguments{};  // before_tool: replacement; JSON object text
    std::string context{};                   // before_model: added to this request; valid UTF-8
    std::optional<std::string> output{};     // after_tool: replacement; valid UTF-8
  };
  // Runs the event's hooks in order, each with the changes of earlier ones; a denial ends the sequence. A hook that
  // crashes, times out or writes invalid output denies; so does a before-hook without output, except before_end. For
  // after_interaction all hooks run: their output is ignored, and a failure only logged. Blocks until they have ended,
  // or until `stop` is requested: then they are killed and the verdict is a denial.
  virtual Verdict Run(HookFacts facts, const std::stop_token& stop) = 0;
};

}  // namespace reprise
