#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "agent/agent.h"
#include "reprise/tool.h"

namespace reprise {

// What a sub-agent is to find out, and the call it works for.
struct SubAgentTask {
  const std::string& call_id;
  std::uint32_t round_index;
  const std::string& question;
  TokenUsage used_before{};    // by the other agent
  const Span* span = nullptr;  // of the call's execution; null: nobody watches
};

// Runs a sub-agent and waits for its answer, which is the outcome: the same loop with the same model, a state of its
// own, only tools that read and never ask, and few rounds. It is held back by the same guards. Its steps are shown as
// `nested` events. Ends within milliseconds when `stop` is requested: its output is empty then. Safe to call from
// several threads at once.
ToolOutcome RunSubAgent(const AgentParts& parts, AgentLimits limits, const SubAgentTask& task,
                        const std::string& model_name, const std::stop_token& stop);

}  // namespace reprise
