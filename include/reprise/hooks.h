#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace reprise {

enum class HookEvent { kBeforeInteraction, kAfterInteraction, kBeforeModel, kAfterModel, kBeforeTool, kAfterTool };

// A command that is asked about, or told of, what an agent does.
struct HookOptions {
  HookEvent event = HookEvent::kBeforeTool;
  std::string tool = "*";              // of the tool events; a pattern (fnmatch(3))
  std::vector<std::string> command{};  // the program, a path or looked for in PATH, and its arguments
  std::chrono::milliseconds timeout{5000};
};

// What a hook gets to read. Each event has the members up to its own.
struct HookFacts {
  HookEvent event = HookEvent::kBeforeTool;
  std::string chat_id{}, interaction_id{};
  std::string user_message{};          // of the interaction events
  std::string status{};                // after_interaction
  std::uint32_t round_index = 0;       // of the others
  std::string model{};                 // of the model events: the provider's name for it
  std::string text{};                  // after_model: what it said
  std::string call_id{}, tool_name{};  // of the tool events
  std::string arguments{};             // likewise; JSON object text
  std::string output{};                // after_tool
  bool is_error = false;               // likewise
};

// The commands that the user has configured. Thread-safe.
class Hooks {
 public:
  virtual ~Hooks() = default;
  // Cheap.
  virtual bool Wants(HookEvent event) const = 0;
  struct Verdict {
    std::optional<std::string> denied{};     // why, for the model and for people; valid UTF-8
    std::optional<std::string> arguments{};  // of before_tool: to be taken instead; JSON object text
    std::string context{};                   // of before_model: what the model is told in this request; valid UTF-8
    std::optional<std::string> output{};     // of after_tool: to be taken instead; valid UTF-8
  };
  // Runs those of the event, one after the other, each with what those before it have changed; the first that denies is
  // the last. One that crashes, takes too long or talks nonsense denies; so does a before-hook that says nothing. Of
  // after_interaction all are run: what they say is not looked at, only logged if they fail. Blocks until they have
  // ended, or `stop` is requested: then they are ended and it is denied.
  virtual Verdict Run(HookFacts facts, const std::stop_token& stop) = 0;
};

}  // namespace reprise
