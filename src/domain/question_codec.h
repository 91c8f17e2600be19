#pragma once

#include <string>
#include <utility>

#include "base/json.h"
#include "reprise/question_store.h"

namespace reprise {

// What a person has said to the question of this id, as journals and databases keep it.
Json ToJson(const std::string& question_id, const GivenAnswer& answer);
// kCorruption unless it is what ToJson makes.
Result<std::pair<std::string, GivenAnswer>> AnswerFromJson(const Json& json);

// The event that asks, without number and time.
Json QuestionToJson(const PendingQuestion& question);
Result<PendingQuestion> QuestionFromJson(const InteractionRef& run, const Json& json);

}  // namespace reprise
