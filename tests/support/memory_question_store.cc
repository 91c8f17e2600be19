#include "support/memory_question_store.h"

#include <algorithm>

namespace reprise {
namespace {

std::optional<Timestamp> ExpiryOf(const PendingQuestion& question) {
  const auto* const approval = std::get_if<PendingApproval>(&question);
  return approval ? approval->request.expires_at : std::nullopt;
}

Error TooLate(std::string reason, std::string message) {
  return Error{.code = ErrorCode::kInvalidArgument, .reason = std::move(reason), .message = std::move(message)};
}

}  // namespace

Result<void> MemoryQuestionStore::Open(const std::vector<PendingQuestion>& questions) {
  const MutexLock lock(mutex_);
  for (const PendingQuestion& question : questions) {
    const auto is_it = [&](const Entry& each) { return QuestionId(each.question) == QuestionId(question); };
    if (std::none_of(entries_.begin(), entries_.end(), is_it)) entries_.push_back({.question = question});
  }
  return {};
}

Result<MemoryQuestionStore::Entry*> MemoryQuestionStore::FindOpen(const std::string& id) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return QuestionId(each.question) == id; });
  if (found == entries_.end()) return Fail(ErrorCode::kNotFound, "there is no such question");
  if (found->answer) return Fail(TooLate("already_processed", "this question was already processed"));
  const auto expires_at = ExpiryOf(found->question);
  if (expires_at && *expires_at <= now_()) return Fail(TooLate("expired", "this question has expired"));
  return &*found;
}

Result<PendingQuestion> MemoryQuestionStore::Find(const std::string& id) {
  const MutexLock lock(mutex_);
  return FindOpen(id).map([](const Entry* entry) { return entry->question; });
}

Result<std::vector<PendingQuestion>> MemoryQuestionStore::Waiting() {
  const MutexLock lock(mutex_);
  std::vector<PendingQuestion> waiting;
  for (const Entry& each : entries_) {
    if (FindOpen(QuestionId(each.question))) waiting.push_back(each.question);
  }
  return waiting;
}

Result<void> MemoryQuestionStore::Answer(const InteractionRef& run, const std::string& id, const GivenAnswer& answer) {
  const MutexLock lock(mutex_);
  return FindOpen(id).and_then([&](Entry* entry) -> Result<void> {
    if (QuestionRun(entry->question) != run) return Fail(ErrorCode::kNotFound, "there is no such question");
    entry->answer = answer;
    return {};
  });
}

Result<std::vector<std::pair<std::string, GivenAnswer>>> MemoryQuestionStore::Answered(const InteractionRef& run) {
  const MutexLock lock(mutex_);
  std::vector<std::pair<std::string, GivenAnswer>> answered;
  for (const Entry& each : entries_) {
    if (each.answer && QuestionRun(each.question) == run) {
      answered.emplace_back(QuestionId(each.question), *each.answer);
    }
  }
  return answered;
}

}  // namespace reprise
