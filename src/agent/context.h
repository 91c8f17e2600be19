#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// A safe estimate of the provider's count: a token for three bytes.
std::int64_t EstimateTokens(const Message& message);
std::int64_t EstimateTokens(const std::vector<ToolSpec>& tools);

// Chooses the messages of a request if the model cannot take all of them. A summary behind the first user message
// replaces those that do not fit; system messages, the last user message and the last five messages stay, and tool
// calls stay with their results. This is only a view: the state keeps all messages.
class Context {
 public:
  // `window` is the limit of request and response together, in tokens; 0: unknown, so there is no limit.
  explicit Context(std::int64_t window);

  // The limit of a request in tokens; 0: unknown.
  std::int64_t budget() const { return budget_; }
  // The limit of all plain modules of the prompt in bytes, three per token: a quarter of a request. npos: unknown.
  std::size_t max_plain_bytes() const {
    return budget_ > 0 ? static_cast<std::size_t>(budget_) * 3 / 4 : static_cast<std::size_t>(-1);
  }
  // The limit of a summary in bytes: a tenth of the budget, up to a maximum.
  std::size_t max_summary_bytes() const;
  // The limit of a request for a summary, in bytes.
  std::size_t max_material_bytes() const;

  // Counts as part of every request.
  void SetSystemPrompt(std::string_view text);

  // Raises later estimates by the ratio of the provider's count to the estimate, if that is higher than before.
  void Calibrate(std::int64_t estimated, std::int64_t counted);
  // The calibrated estimate of a whole request.
  std::int64_t Estimate(const Messages& messages, const std::vector<ToolSpec>& tools) const;

  bool FitsWhole(const AgentState& state, const std::vector<ToolSpec>& tools) const;
  // Whether the messages fit if the state's summary replaces its part of them.
  bool Fits(const AgentState& state, const std::vector<ToolSpec>& tools) const;
  // For a state that does not fit: the extent of the next summary, without its text. If it is empty or the extent of
  // the state's own compaction, nothing more can be summed up.
  Compaction NextExtent(const AgentState& state, const std::vector<ToolSpec>& tools) const;
  // The extent of a summary that a person requests: everything before the last user message.
  Compaction RequestedExtent(const AgentState& state) const;
  // For a state that does not fit, as it would be sent: before which message tool results must be cleared so that about
  // half of the budget is free again. nullopt if that is not enough to make it fit.
  std::optional<std::uint64_t> ResultsToClear(const AgentState& sent, const std::vector<ToolSpec>& tools) const;
  // The messages to send, never beyond the budget. If a summary is not enough, shortens tool results, then earlier user
  // messages, each with a note. kTooLarge (reason "context_length") if even that does not help.
  Result<Messages> View(const AgentState& state, const std::vector<ToolSpec>& tools) const;

 private:
  // Longer messages are cut to this many tokens.
  struct Limits {
    std::int64_t tool, user;
  };
  std::vector<Limits> Shortenings(std::int64_t room) const;
  std::int64_t Room(const std::vector<ToolSpec>& tools) const;

  const std::int64_t budget_;
  std::int64_t system_tokens_ = 0;
  std::int64_t percent_ = 100;  // the provider's count in percent of our estimate
};

// `messages` with a note in place of each long tool result before message `cleared`.
Messages WithoutResults(const Messages& messages, std::uint64_t cleared);
// The number of those in the messages [first, end).
std::int64_t CountLongResults(const Messages& messages, std::uint64_t first, std::uint64_t end);

// A summary made without a model: a line for each message and its calls, shortened evenly. At most `max_bytes`.
std::string Outline(const Messages& messages, std::size_t first, std::size_t end, std::size_t max_bytes,
                    std::size_t longest_line = 300);

// A summary to make.
struct SummaryTask {
  const AgentState& state;  // its own summary, if it has one, is part of it
  const Compaction& extent;
  std::size_t max_bytes;          // of the summary
  std::size_t max_request_bytes;  // of the material sent for it
};

struct Summary {
  std::string text;  // at most max_bytes, valid UTF-8; empty if the model failed or took more than half a minute
  TokenUsage usage;
};

// Lets the model sum up messages that later requests omit, in a child of `span`, which must live until then. Ends
// within milliseconds when `stop` is requested.
Async<Summary> Summarize(const AgentParts& parts, const std::string& model_name, const SummaryTask& task,
                         std::stop_token stop, const Span& span, std::uint32_t round_index);

}  // namespace reprise
