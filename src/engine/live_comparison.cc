#include "engine/live_comparison.h"

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

namespace reprise {
namespace {

bool Counts(const AgentEvent& event) {
  return !std::holds_alternative<event::Usage>(event.payload) && !std::holds_alternative<event::Retry>(event.payload) &&
         !std::holds_alternative<event::FilesChanged>(event.payload);  // what they change depends on what was there
}

std::vector<AgentEvent> WhatCounts(const Interaction& interaction) {
  std::vector<AgentEvent> events;
  for (const AgentEvent& event : interaction.events) {
    if (Counts(event)) events.push_back(event);
  }
  return events;
}

// Takes away what is chosen at random or taken from a clock.
struct Strip {
  void operator()(event::ToolCallStarted& call) const { call.id.clear(); }
  // Files are kept anew, under ids of their own.
  void operator()(event::ToolResult& result) const {
    result.id.clear();
    for (const Attachment& file : result.files) {
      const std::string& id = file.id.str();
      const std::size_t at = result.tool_output.find(id);
      if (at != std::string::npos) result.tool_output.erase(at, id.size());
    }
    result.files.clear();
  }
  void operator()(event::ApprovalRequired& asked) const {
    asked.approval_id.clear();
    asked.call_id.clear();
    asked.created_at = {};
    asked.expires_at.reset();
    asked.terms_digest.clear();  // not of what the agent did; the reason says what matters of it
  }
  void operator()(event::Approved& approved) const { approved.approval_id.clear(), approved.call_id.clear(); }
  void operator()(event::Rejected& rejected) const { rejected.approval_id.clear(), rejected.call_id.clear(); }
  void operator()(event::Nested& nested) const {
    nested.call_id.clear();
    std::visit(*this, nested.step);
  }
  void operator()(event::InputRequired& asked) const { asked.request_id.clear(), asked.call_id.clear(); }
  void operator()(event::InputReceived& received) const { received.request_id.clear(), received.call_id.clear(); }
  void operator()(event::TaskUpdated& updated) const { updated.call_id.reset(); }
  void operator()(event::PlanUpdated& updated) const { updated.call_id.reset(); }
  template <typename T>
  void operator()(T&) const {}
};

EventPayload Comparable(EventPayload payload) {
  std::visit(Strip{}, payload);
  return payload;
}

}  // namespace

ReplayReport CompareRuns(const Interaction& recorded, const Interaction& again) {
  const std::vector<AgentEvent> expected = WhatCounts(recorded), actual = WhatCounts(again);
  ReplayReport report;
  for (std::size_t i = 0; i < expected.size() || i < actual.size(); ++i) {
    const bool both = i < expected.size() && i < actual.size();
    if (both && expected[i].round_index == actual[i].round_index &&
        Comparable(expected[i].payload) == Comparable(actual[i].payload)) {
      ++report.events;
      continue;
    }
    Divergence divergence;
    if (i < expected.size()) {
      divergence.seq = expected[i].seq;
      divergence.expected = expected[i];
    } else {
      divergence.seq = recorded.events.empty() ? 2 : recorded.events.back().seq + 1;
    }
    if (i < actual.size()) divergence.actual = actual[i];
    divergence.reason = "the second run does something else than the first one did";
    report.divergence = std::move(divergence);
    break;
  }
  return report;
}

}  // namespace reprise
