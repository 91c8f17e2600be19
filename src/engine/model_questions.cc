#include "engine/model_questions.h"

#include <utility>

#include "base/try.h"

namespace reprise {

// Stops when its client does, or the server.
struct ModelQuestions::UnderWay {
  UnderWay(ModelClient::Done done_with, std::stop_token client)
      : done(std::move(done_with)), client_stops(std::move(client), [this] { stop.request_stop(); }) {}

  ModelClient::Done done;
  Span span{};
  std::stop_source stop;
  std::stop_callback<std::function<void()>> client_stops;
};

Result<void> ModelQuestions::Ask(const ModelQuestion& question, ModelStream& stream, std::stop_token stop,
                                 ModelClient::Done done) {
  for (const Message& message : question.messages) {
    if (message.role == Role::kUser) TRY(services_.guardrails.Admit(message.content.value_or("")));
  }
  const auto model = TRY(services_.parts.models.Resolve(question.model));
  TRY(services_.usage_limits.ForRequest());
  const auto asked = std::make_shared<UnderWay>(std::move(done), std::move(stop));
  asked->span = Span::Begin(services_.parts.telemetry, "chat " + model.full_name, question.trace_parent);
  TRY(Begin(asked));
  const ModelRequest request{.model = model.model,
                             .messages = question.messages,
                             .tools = question.tools,
                             .system = question.system,
                             .traceparent = FormatTraceparent(asked->span.context())};
  model.client->Generate(request, stream, asked->stop.get_token(),
                         [this, asked](Result<ModelResponse> response) { End(asked, std::move(response)); });
  return {};
}

Result<void> ModelQuestions::Begin(const std::shared_ptr<UnderWay>& asked) {
  const MutexLock lock(mutex_);
  if (refusing_) return Fail(Stopping());
  under_way_.insert(asked);
  return {};
}

void ModelQuestions::End(const std::shared_ptr<UnderWay>& asked, Result<ModelResponse> response) {
  if (response) services_.usage_limits.AddRequest(response->usage);
  if (!response) asked->span.Fail(response.error().reason);
  asked->span = Span();
  asked->done(std::move(response));
  const MutexLock lock(mutex_);
  under_way_.erase(asked);
  ended_.notify_all();
}

void ModelQuestions::Refuse() {
  const MutexLock lock(mutex_);
  refusing_ = true;
}

void ModelQuestions::Stop() {
  Refuse();
  MutexLock lock(mutex_);
  const auto all = under_way_;
  lock.unlock();
  for (const auto& asked : all) asked->stop.request_stop();
  lock.lock();
  ended_.wait(lock, [this]() REQUIRES(mutex_) { return under_way_.empty(); });
}

}  // namespace reprise
