#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/approval.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// A question to a person, and the answer.
using PendingQuestion = std::variant<PendingApproval, PendingInput>;
using GivenAnswer = std::variant<ApprovalAnswer, InputAnswer>;

const std::string& QuestionId(const PendingQuestion& question);
InteractionRef QuestionRun(const PendingQuestion& question);

// The questions of runs, for any process to answer: only this store decides which answer counts. A question exists
// until its run ends. Thread-safe.
//
//   auto waiting = questions.Waiting();
//   if (!waiting || waiting->empty()) return;
//   const auto& question = waiting->front();
//   auto done = questions.Answer(reprise::QuestionRun(question), reprise::QuestionId(question),
//                                reprise::ApprovalAnswer{.approved = true});
class QuestionStore {
 public:
  virtual ~QuestionStore() = default;

  // Opens them for answers; durable when it returns ok. Existing ones stay as they are.
  virtual Result<void> Open(const std::vector<PendingQuestion>& questions) = 0;
  // A question that can be answered now. kNotFound; kInvalidArgument: reason "already_processed" or "expired".
  virtual Result<PendingQuestion> Find(const std::string& id) = 0;
  // All questions that can be answered now, oldest first.
  virtual Result<std::vector<PendingQuestion>> Waiting() = 0;
  // The first answer to a question of this run counts, and is durable when this returns ok. Failures as Find.
  virtual Result<void> Answer(const InteractionRef& run, const std::string& id, const GivenAnswer& answer) = 0;
  // The answers to a run's questions, with the questions' ids.
  virtual Result<std::vector<std::pair<std::string, GivenAnswer>>> Answered(const InteractionRef& run) = 0;
};

}  // namespace reprise
