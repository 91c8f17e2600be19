#pragma once

#include <stop_token>
#include <string>

#include "agent/agent.h"

// What agents tell those who watch (reprise/telemetry.h), in the words of OpenTelemetry's conventions for generative
// AI. Spans may be empty.
namespace reprise {

void DescribeAgent(Span& span, const char* agent, const ModelClient& model, const std::string& model_name);
void DescribeOutcome(Span& span, const AgentOutcome& outcome);

// Has the model respond (ModelClient::Generate), which is a span beneath `parent`. `request`, `stream` and `parent`
// must live until then.
Async<Result<ModelResponse>> AskModelClient(const AgentParts& parts, const ModelRequest& request, ModelStream& stream,
                                            std::stop_token stop, const Span& parent);

}  // namespace reprise
