#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"

namespace reprise {

// The observer and the people of an agent that nobody watches and that asks nobody.
class Unattended : public AgentObserver, public ApprovalGate {
 public:
  void Emit(std::uint32_t, EventPayload) override {}
  void AddTextDelta(std::uint32_t, std::string_view) override {}
  void AddThinkingDelta(std::uint32_t, std::string_view) override {}
  void FlushDeltas() override {}
  void StateGrew(const AgentState&) override {}
  std::vector<std::string> Ask(std::uint32_t, std::vector<event::ApprovalRequired>,
                               std::optional<event::Rejected>) override {
    return {};
  }
  Async<Result<Answered>> AwaitAnswer(std::vector<std::string>, std::stop_token, const Executor&) override {
    co_return Fail(ErrorCode::kCancelled, "nobody is asked");
  }
  ApprovalMode ModeFor(const std::string&) override { return ApprovalMode::kApproveAll; }
  std::vector<Grant> StandingGrants(const Grant&) override { return {}; }
  void NoteUse(const std::vector<std::string>&) override {}
  Async<Result<Reply>> AskInput(std::uint32_t, event::InputRequired, std::stop_token, const Executor&) override {
    co_return Fail(ErrorCode::kCancelled, "nobody is asked");
  }
};

}  // namespace reprise
