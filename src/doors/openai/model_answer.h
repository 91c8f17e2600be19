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

// The answer of a model alone, as it comes. Nothing of it is kept.
class ModelAnswer final : public ModelStream, public std::enable_shared_from_this<ModelAnswer> {
 public:
  ModelAnswer(const OpenAiRequest& request, std::unique_ptr<AnswerWriter> writer);

  // Asks. The failures of Engine::Ask; later ones are in the answer.
  Result<void> Begin(Engine& engine, const OpenAiRequest& request, const TraceContext& trace_parent);
  // The client has gone.
  void Stop() { stop_.request_stop(); }

  // What the client is sent, if it wants a stream; closed when the answer has ended.
  const std::shared_ptr<EventLog>& log() const { return log_; }
  // The answer as one object, or why there is none. REQUIRES: the log is closed.
  Result<std::string> Whole();

  void OnThinking(std::string_view delta) override;
  void OnText(std::string_view delta) override;
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
