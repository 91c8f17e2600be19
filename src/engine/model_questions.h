#pragma once

#include <memory>
#include <set>
#include <stop_token>

#include "base/mutex.h"
#include "engine/services.h"

namespace reprise {

// Questions to models without a chat (Engine::Ask). Thread-safe.
class ModelQuestions {
 public:
  explicit ModelQuestions(EngineServices& services) : services_(services) {}

  Result<void> Ask(const ModelQuestion& question, ModelStream& stream, std::stop_token stop, ModelClient::Done done);
  // Refuses further questions.
  void Refuse();
  // Stops the questions under way and waits for their end.
  void Stop();

 private:
  struct UnderWay;

  Result<void> Begin(const std::shared_ptr<UnderWay>& asked);
  // The messages for the model, with their files. May wait for the reader of documents.
  Messages MessagesOf(const ModelQuestion& question, const ModelDirectory::Resolved& model,
                      const std::stop_token& stop) const;
  void Send(const std::shared_ptr<UnderWay>& asked);
  void End(const std::shared_ptr<UnderWay>& asked, Result<ModelResponse> response);

  EngineServices& services_;
  Mutex mutex_;
  Condition ended_;
  std::set<std::shared_ptr<UnderWay>> under_way_ GUARDED_BY(mutex_);
  bool refusing_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
