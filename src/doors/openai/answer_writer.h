#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "doors/openai/request.h"
#include "reprise/event.h"
#include "reprise/message.h"

namespace reprise::openai {

// The facts about an answer that are known when it begins.
struct AnswerHead {
  std::string name;          // "CHAT_int_001", or random; ids put a prefix before it
  std::int64_t created = 0;  // seconds since 1970
};

struct AnswerFailure {
  std::string code, message;
  bool retryable = false;  // a repeated request may succeed, and this one had no effect
};

// How an answer ended.
struct AnswerEnd {
  InteractionStatus status = InteractionStatus::kCompleted;
  TokenUsage usage{};
  std::string truncated{};  // a value of event::Answer::reason
  std::optional<AnswerFailure> failure{};
  std::optional<std::int64_t> at{};  // seconds since 1970; nullopt: now
};

// Writes an answer in the form of one of OpenAI's interfaces, piece by piece: as a stream of server-sent events, or as
// one object, which End writes. Text is the inside of a JSON string, because both sides have it in this form.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void Begin(const AnswerHead& head, std::string& out) = 0;
  virtual void Thinking(std::string_view escaped, std::string& out) = 0;
  virtual void Text(std::string_view escaped, std::string& out) = 0;
  // A call by a model alone, for its client to run.
  virtual void Call(const ToolCall& call, std::string& out) = 0;
  virtual void End(const AnswerEnd& end, std::string& out) = 0;
};

// chat.completion.chunk objects, or a chat.completion.
std::unique_ptr<AnswerWriter> MakeChatCompletionWriter(const OpenAiRequest& request);
// Events from response.created to response.completed, or a response.
std::unique_ptr<AnswerWriter> MakeResponseWriter(const OpenAiRequest& request);

// {"message":...,"type":...,"param":null,"code":...,"retryable":...}
std::string OpenAiErrorObject(const AnswerFailure& failure, std::string_view type = "server_error");

}  // namespace reprise::openai
