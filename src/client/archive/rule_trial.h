#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "approval/decision.h"
#include "approval/rules.h"
#include "client/archive/past_calls.h"
#include "engine/drift.h"
#include "reprise/approval.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// What rules would have decided about a call on record.
struct TriedCall {
  enum class Verdict { kRuns, kAsks, kRefused, kNotTried };
  const PastCall* call = nullptr;
  Verdict verdict = Verdict::kNotTried;
  std::string why{};  // "rule 2", "default", "grant"; kNotTried: a sentence

  // The new rules let run what a person rejected or a rule denied.
  bool has_slipped() const { return verdict == Verdict::kRuns && call->was_held_back(); }
  bool saves_question() const { return verdict == Verdict::kRuns && call->was_asked(); }
  bool is_new_question() const { return verdict == Verdict::kAsks && !call->was_asked(); }
  bool is_new_refusal() const;
};

// A rule that people's answers speak for.
struct SuggestedRule {
  ToolRule rule;
  std::string means;         // one sentence
  std::size_t served = 0;    // questions that it would have saved
  std::set<ChatId> chats{};  // in which they were asked
};

// Tries rules on calls of the past, in the folders where they were made, with the tools of today. Decides as a server
// does (approval/decision); what was then and is not now, such as grants and modes, is taken from the record. Runs no
// tool and no hook. Not thread-safe.
//
//   RuleTrial trial([&](const std::string& folder) { return present.At(folder); });
//   for (const PastCall& each : past.calls()) Show(trial.Try(each, rules));
class RuleTrial {
 public:
  // The agent of today in a folder; its parts must outlive the trial.
  using AgentIn = std::function<Result<PresentAgent>(const std::string& folder)>;
  explicit RuleTrial(AgentIn agent_in);
  ~RuleTrial();

  // `rules` in place of those of today.
  TriedCall Try(const PastCall& call, const ToolRules& rules);

  // Rules that allow what people have always allowed, on top of those of today, the most useful one first. Each serves
  // at least kLeastServed questions in kLeastChats chats, none allows a call that was held back, and each is the
  // narrowest of its kind.
  static constexpr std::size_t kLeastServed = 3, kLeastChats = 2;
  std::vector<SuggestedRule> Suggest(const std::vector<PastCall>& calls);

 private:
  class ToolOfServer;
  struct Place;
  struct Found;
  struct Evidence;
  struct Candidate;

  Result<Place*> In(const std::string& folder);
  Result<Found> Find(const PastCall& call);
  Decision DecideOn(const PastCall& call, const ToolCall& as, const Found& found, const ToolRules& rules);
  ApprovalMode ModeThen(const PastCall& call, const Found& found);
  std::vector<Evidence> Collect(const std::vector<PastCall>& calls, bool allowed);
  bool LetsRun(const ToolRule& rule, const Evidence& evidence);
  static std::vector<Candidate> CandidatesOf(const std::vector<Evidence>& allowed);

  const AgentIn agent_in_;
  std::map<std::string, Result<std::unique_ptr<Place>>> places_;  // by folder
};

}  // namespace reprise
