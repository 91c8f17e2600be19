#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "agent/agent.h"
#include "reprise/tool.h"

namespace reprise {

// A sub-agent's question, and the call that it works for.
struct SubAgentTask {
  const std::string& call_id;
  std::uint32_t round_index;
  const std::string& question;
  std::string agent{};          // of a person; empty: the one that only reads
  std::vector<Grant> grants{};  // of the chat
  TokenUsage used_before{};     // by the calling agent
  const Span* span = nullptr;   // of the call's execution; null: no tracing
};

// The agents in use, for the description of the tool that starts them; at most 4 KiB. Empty: there are none.
std::string DescribeSubAgents(const std::vector<ProjectInstructions::File>& files);

// Runs a sub-agent and waits for its answer, which is the outcome: the same loop with the same model and guards, but
// its own state, only tools that read and never ask, and few rounds. Its steps are shown as `nested` events. Ends
// within milliseconds when `stop` is requested; then its output is empty. Safe to call from several threads at once.
//
// An agent of a person (AgentParts::instructions) has the tools, the model and the mode of its file. The chat's mode
// holds, too. It may write: its calls are asked about and recorded as those of the run.
ToolOutcome RunSubAgent(const AgentParts& parts, AgentLimits limits, const SubAgentTask& task,
                        const std::string& model_name, const std::stop_token& stop);

}  // namespace reprise
