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

// People's answers, and the grants for always that they give. The functions work as those of Engine. Thread-safe.
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
  // Passes answers that came in at other processes to the runs of this one, or to the run `of` alone.
  void TakeFromOthers(const std::optional<InteractionRef>& of = std::nullopt);
  // The open requests, here and at other processes.
  std::vector<PendingApproval> Approvals() const;
  std::vector<PendingInput> Inputs() const;

 private:
  template <typename Kind>
  Result<typename Requests<Kind>::Found> FindOpen(const Requests<Kind>& requests, std::string_view id,
                                                  const std::optional<InteractionRef>& within) const;
  // Whether a request belonged to this interaction and was answered before this process began.
  template <typename Kind>
  bool WasAsked(std::string_view id, const InteractionRef& within) const;
  // The error for an answer that did not count.
  Error WhyNotGiven(const Error& error) const;
  // `supersede` withdraws a request whose terms have changed since it was shown.
  Result<void> CheckApproval(const ChatId& chat, const event::ApprovalRequired& request, const ApprovalAnswer& answer,
                             const std::function<Result<void>()>& supersede);
  // Checks the scope and pattern of an answer that lasts.
  static Result<void> CheckGrant(const event::ApprovalRequired& request, const ApprovalAnswer& answer);
  Result<void> CheckInput(const event::InputRequired& request, const InputAnswer& answer) const;
  // Gives the answer if it is the first one in any process.
  template <typename Kind>
  Result<void> Give(Requests<Kind>& requests, const typename Requests<Kind>::Found& found,
                    const typename Kind::Answer& answer);
  // The same for a claimed request, which is open again if this fails.
  template <typename Kind>
  Result<void> Settle(Requests<Kind>& requests, const typename Requests<Kind>::Found& found,
                      const typename Kind::Answer& answer);
  // Finds a request of a run in another process.
  template <typename Kind>
  Result<typename Kind::Pending> FindElsewhere(std::string_view id, const std::optional<InteractionRef>& within) const;
  template <typename Kind>
  Result<bool> IsAskedHere(const Requests<Kind>& requests, std::string_view id) const;
  // For an answer for always: stores the grant, then calls `give`, and takes the grant back if that fails.
  Result<void> GrantAnd(const event::ApprovalRequired& request, const ApprovalAnswer& answer,
                        const std::function<Result<void>()>& give);
  Result<void> GrantAndGive(const ApprovalRequests::Found& found, const ApprovalAnswer& answer);
  // Removes standing grants of a tool that needs consent, because a new consent must not revive them.
  Result<void> DropOutdatedGrants(const Tool* tool);
  // When this returns ok, the answer to a request of `run` is on record. The run goes on meanwhile. A null `run` has
  // ended, and its checkpoint has the answer.
  Result<void> KeepAnswer(const std::shared_ptr<Run>& run, const std::string& id, GivenAnswer answer);

  EngineServices& services_;
  BusyChats& busy_;
  Interactions& interactions_;
};

}  // namespace reprise
