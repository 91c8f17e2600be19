#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "doors/openai/answer_writer.h"
#include "reprise/engine.h"
#include "reprise/event_log.h"
#include "reprise/model_client.h"

namespace reprise::openai {

// Passes on the answer of a model alone while it is made. Nothing of it is kept.
class ModelAnswer final : public ModelStream, public std::enable_shared_from_this<ModelAnswer> {
 public:
  ModelAnswer(const OpenAiRequest& request, std::unique_ptr<AnswerWriter> writer);

  // Asks the model. Fails like Engine::Ask and MakeFile; later failures are in the answer.
  Result<void> Begin(Engine& engine, const OpenAiRequest& request, const TraceContext& trace_parent);
  // Called when the client is gone.
  void Stop() { stop_.request_stop(); }

  // The stream for the client, if it wants one; closed when the answer has ended.
  const std::shared_ptr<EventLog>& log() const { return log_; }
  // The answer as one object, or the failure. REQUIRES: the log is closed.
  Result<std::string> Whole();

  void OnThinking(std::string_view delta) override;
  void OnText(std::string_view delta) override;
  void OnRefusal(std::string_view delta) override;
  void OnBatchEnd() override { Send(); }

 private:
  void OnDone(Result<ModelResponse> response);
  void Send();

  const bool stream_;
  const std::unique_ptr<AnswerWriter> writer_;
  const std::shared_ptr<EventLog> log_ = std::make_shared<EventLog>();
  std::stop_source stop_;
  std::string out_;
  std::optional<Error> failure_;
};

}  // namespace reprise::openai
