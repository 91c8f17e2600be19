#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "approval/requests.h"
#include "engine/interactions.h"
#include "engine/services.h"

namespace reprise {

// What people answer, and what they have allowed for always. Functions are as those of Engine. Thread-safe.
class Answers {
 public:
  Answers(EngineServices& services, BusyChats& busy, Interactions& interactions)
      : services_(services), busy_(busy), interactions_(interactions) {}

  Result<PendingApproval> AnswerApproval(std::string_view approval_id, ApprovalAnswer answer,
                                         const std::optional<InteractionRef>& within);
  Result<PendingInput> AnswerInput(std::string_view request_id, InputAnswer answer,
                                   const std::optional<InteractionRef>& within);
  Result<PendingApproval> FindApproval(std::string_view approval_id) const;
  Result<FileChange> PreviewChange(std::string_view approval_id) const;
  // Gives the runs of this process, or one of them, what was answered at others.
  void TakeFromOthers(const std::optional<InteractionRef>& of = std::nullopt);
  // What waits, here and at others.
  std::vector<PendingApproval> Approvals() const;
  std::vector<PendingInput> Inputs() const;

 private:
  template <typename Kind>
  Result<typename Requests<Kind>::Found> FindOpen(const Requests<Kind>& requests, std::string_view id,
                                                  const std::optional<InteractionRef>& within) const;
  // Whether a request was part of this interaction, and was processed before this process began.
  template <typename Kind>
  bool WasAsked(std::string_view id, const InteractionRef& within) const;
  // What an answer is told that did not count.
  Error WhyNotGiven(const Error& error) const;
  // `supersede` withdraws what is not so any more as it was shown.
  Result<void> CheckApproval(const ChatId& chat, const event::ApprovalRequired& request, const ApprovalAnswer& answer,
                             const std::function<Result<void>()>& supersede);
  // What an answer that lasts may say.
  static Result<void> CheckGrant(const event::ApprovalRequired& request, const ApprovalAnswer& answer);
  Result<void> CheckInput(const event::InputRequired& request, const InputAnswer& answer) const;
  // Gives the answer, if it is the first one anywhere.
  template <typename Kind>
  Result<void> Give(Requests<Kind>& requests, const typename Requests<Kind>::Found& found,
                    const typename Kind::Answer& answer);
  // One that a run of another process asks.
  template <typename Kind>
  Result<typename Kind::Pending> FindElsewhere(std::string_view id, const std::optional<InteractionRef>& within) const;
  template <typename Kind>
  Result<bool> IsAskedHere(const Requests<Kind>& requests, std::string_view id) const;
  // An answer for always: the grant is kept before the answer counts.
  Result<void> GrantAndAnswer(const InteractionRef& run, const event::ApprovalRequired& request,
                              const ApprovalAnswer& answer);
  Result<void> GrantAndGive(const ApprovalRequests::Found& found, ApprovalAnswer answer);
  // A tool that needs consent is not what was granted for always, if anything was: consent does not bring that back.
  Result<void> DropOutdatedGrants(const Tool* tool);
  // The answer that a request of `run` was given is on record when this returns ok. The run goes on meanwhile. Null:
  // it has ended, and its checkpoint has the answer.
  Result<void> KeepAnswer(const std::shared_ptr<Run>& run, const std::string& id, GivenAnswer answer);

  EngineServices& services_;
  BusyChats& busy_;
  Interactions& interactions_;
};

}  // namespace reprise
