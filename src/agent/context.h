#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// What a provider will count, estimated on the safe side: a token for three bytes.
std::int64_t EstimateTokens(const Message& message);
std::int64_t EstimateTokens(const std::vector<ToolSpec>& tools);

// Which messages a request has, when the model cannot take all of them. What does not fit is told by a summary that
// stands behind the first user message; system messages, the last thing the user said and the last five messages stay,
// tool calls and their results together. This is a view: nothing is taken out of the state.
class Context {
 public:
  // `window` is what request and response may have together, in tokens; 0: not known, and there is no limit.
  explicit Context(std::int64_t window);

  // Tokens that a request may have. 0: not known.
  std::int64_t budget() const { return budget_; }
  // Bytes that a summary may have: a tenth of the budget, and never much.
  std::size_t max_summary_bytes() const;
  // Bytes that may be sent to have one made.
  std::size_t max_material_bytes() const;

  // Counts as part of every request.
  void SetSystemPrompt(std::string_view text);

  // What the provider counted where `estimated` was the estimate: later estimates are no lower than that.
  void Calibrate(std::int64_t estimated, std::int64_t counted);
  // Of a whole request, as it has turned out so far.
  std::int64_t Estimate(const Messages& messages, const std::vector<ToolSpec>& tools) const;

  bool FitsWhole(const AgentState& state, const std::vector<ToolSpec>& tools) const;
  // Whether the messages fit with the state's summary in place of those that it tells.
  bool Fits(const AgentState& state, const std::vector<ToolSpec>& tools) const;
  // For a state that does not fit: what a summary should stand for, its text still to be written. An extent that is
  // empty or that of the state's own compaction: there is nothing more to sum up.
  Compaction NextExtent(const AgentState& state, const std::vector<ToolSpec>& tools) const;
  // What a summary should stand for that a person asks for: all that was said before the last message of the user.
  Compaction RequestedExtent(const AgentState& state) const;
  // What is sent. Where a summary is not enough tool results are shortened, then what the user said before, and say so;
  // what is sent never exceeds the budget. kTooLarge (reason "context_length") if even that does not help.
  Result<Messages> View(const AgentState& state, const std::vector<ToolSpec>& tools) const;

 private:
  // Messages that are longer than so many tokens are cut.
  struct Limits {
    std::int64_t tool, user;
  };
  std::vector<Limits> Shortenings(std::int64_t room) const;
  std::int64_t Room(const std::vector<ToolSpec>& tools) const;

  const std::int64_t budget_;
  std::int64_t system_tokens_ = 0;
  std::int64_t percent_ = 100;  // of an estimate that the provider counts
};

// A summary made without a model: a line for what was said and called, shortened evenly. At most `max_bytes`.
std::string Outline(const Messages& messages, std::size_t first, std::size_t end, std::size_t max_bytes,
                    std::size_t longest_line = 300);

// What is to be summed up.
struct SummaryTask {
  const AgentState& state;  // its own summary, if it has one, is part of it
  const Compaction& extent;
  std::size_t max_bytes;          // of the summary
  std::size_t max_request_bytes;  // of what is sent for it
};

struct Summary {
  std::string text;  // at most max_bytes, valid UTF-8; empty if the model did not manage in half a minute
  TokenUsage usage;
};

// Has a model sum up messages that it will not be sent any more, beneath `span`, which must live until then. Ends
// within milliseconds when `stop` is requested.
Async<Summary> Summarize(const AgentParts& parts, const std::string& model_name, const SummaryTask& task,
                         std::stop_token stop, const Span& span);

}  // namespace reprise
