#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/approval.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// What a person is asked, and what a person has said to it.
using PendingQuestion = std::variant<PendingApproval, PendingInput>;
using GivenAnswer = std::variant<ApprovalAnswer, InputAnswer>;

const std::string& QuestionId(const PendingQuestion& question);
InteractionRef QuestionRun(const PendingQuestion& question);

// The questions of runs, where any process may answer them: which answer counts is decided here, and nowhere else. A
// question is there as long as its run has not ended. Thread-safe.
class QuestionStore {
 public:
  virtual ~QuestionStore() = default;

  // From now on they can be answered; durable when it returns ok. Those that are there already stay as they are.
  virtual Result<void> Open(const std::vector<PendingQuestion>& questions) = 0;
  // One that can be answered now. kNotFound; kInvalidArgument: reason "already_processed" or "expired".
  virtual Result<PendingQuestion> Find(const std::string& id) = 0;
  // All that can be answered now, oldest first.
  virtual Result<std::vector<PendingQuestion>> Waiting() = 0;
  // The first answer to a question of this run counts, and is durable when this returns ok. Failures as of Find.
  virtual Result<void> Answer(const InteractionRef& run, const std::string& id, const GivenAnswer& answer) = 0;
  // What was answered of a run's, by their ids.
  virtual Result<std::vector<std::pair<std::string, GivenAnswer>>> Answered(const InteractionRef& run) = 0;
};

}  // namespace reprise
