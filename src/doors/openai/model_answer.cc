#include "doors/openai/model_answer.h"

#include <chrono>
#include <utility>

#include "base/json.h"
#include "base/system.h"
#include "base/try.h"

namespace reprise::openai {
namespace {

constexpr std::uint64_t kMostWaitingForClient = 8 * 1024 * 1024;

}  // namespace

ModelAnswer::ModelAnswer(const OpenAiRequest& request, std::unique_ptr<AnswerWriter> writer)
    : stream_(request.stream), writer_(std::move(writer)) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  writer_->Begin({.name = RandomHex(12), .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                 out_);
}

Result<void> ModelAnswer::Begin(Engine& engine, const OpenAiRequest& request, const TraceContext& trace_parent) {
  ModelQuestion question{.model = request.model,
                         .system = request.instructions,
                         .messages = request.messages,
                         .tools = request.tools,
                         .wishes = request.wishes,
                         .trace_parent = trace_parent};
  for (const auto& [message, file] : request.message_files) {
    question.files.push_back({message, TRY(MakeFile(file.filename, file.mime_type, file.content))});
  }
  if (stream_) Send();
  return engine.Ask(question, *this, stop_.get_token(),
                    [self = shared_from_this()](Result<ModelResponse> response) { self->OnDone(std::move(response)); });
}

void ModelAnswer::OnThinking(std::string_view delta) {
  std::string escaped;
  AppendJsonEscaped(escaped, delta);
  writer_->Thinking(escaped, out_);
}

void ModelAnswer::OnText(std::string_view delta) {
  std::string escaped;
  AppendJsonEscaped(escaped, delta);
  writer_->Text(escaped, out_);
}

void ModelAnswer::OnRefusal(std::string_view delta) {
  std::string escaped;
  AppendJsonEscaped(escaped, delta);
  writer_->Refusal(escaped, out_);
}

void ModelAnswer::OnDone(Result<ModelResponse> response) {
  AnswerEnd end;
  if (response) {
    for (const ToolCall& call : response->tool_calls) writer_->Call(call, out_);
    end.usage = response->usage;
    end.truncated = response->truncated;
  } else {
    failure_ = response.error();
    end.status = InteractionStatus::kFailed;
    end.failure = AnswerFailure{failure_->reason, failure_->message, failure_->retryable};
  }
  writer_->End(end, out_);
  if (stream_) Send();
  log_->Close();
}

void ModelAnswer::Send() {
  if (!stream_ || out_.empty()) return;
  log_->AppendFrames(out_);
  out_.clear();
  log_->Publish();
  if (log_->kept_bytes() > kMostWaitingForClient) stop_.request_stop();
}

Result<std::string> ModelAnswer::Whole() {
  if (failure_) return Fail(*failure_);
  return std::move(out_);
}

}  // namespace reprise::openai
