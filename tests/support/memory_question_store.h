#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/question_store.h"
#include "reprise/timestamp.h"

namespace reprise {

// The simplest QuestionStore, which the others are compared with. Thread-safe.
class MemoryQuestionStore final : public QuestionStore {
 public:
  explicit MemoryQuestionStore(std::function<Timestamp()> now = Now) : now_(std::move(now)) {}

  Result<void> Open(const std::vector<PendingQuestion>& questions) override;
  Result<PendingQuestion> Find(const std::string& id) override;
  Result<std::vector<PendingQuestion>> Waiting() override;
  Result<void> Answer(const InteractionRef& run, const std::string& id, const GivenAnswer& answer) override;
  Result<std::vector<std::pair<std::string, GivenAnswer>>> Answered(const InteractionRef& run) override;

 private:
  struct Entry {
    PendingQuestion question;
    std::optional<GivenAnswer> answer{};
  };
  Result<Entry*> FindOpen(const std::string& id) REQUIRES(mutex_);

  const std::function<Timestamp()> now_;
  Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);  // oldest first
};

}  // namespace reprise
