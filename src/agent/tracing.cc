#include "agent/tracing.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace reprise {
namespace {

// Notes when the first words come.
class TimedStream final : public ModelStream {
 public:
  explicit TimedStream(ModelStream& stream, bool keeps_text) : stream_(stream), keeps_text_(keeps_text) {}
  void OnThinking(std::string_view delta) override {
    Note();
    stream_.OnThinking(delta);
  }
  void OnText(std::string_view delta) override {
    Note();
    if (keeps_text_ && text_.size() < kMaxSpanContent) text_ += delta;
    stream_.OnText(delta);
  }
  void OnBatchEnd() override { stream_.OnBatchEnd(); }

  std::optional<double> seconds_to_first() const { return to_first_; }
  const std::string& text() const { return text_; }

 private:
  using Clock = std::chrono::steady_clock;
  void Note() {
    if (!to_first_) to_first_ = std::chrono::duration<double>(Clock::now() - began_).count();
  }

  ModelStream& stream_;
  const bool keeps_text_;
  const Clock::time_point began_ = Clock::now();
  std::optional<double> to_first_;
  std::string text_;
};

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "user";
}

Json TextPart(const std::string& text) { return {{"type", "text"}, {"content", text}}; }
Json CallPart(const ToolCall& call) {
  const auto arguments = ParseJson(call.arguments);
  return {{"type", "tool_call"},
          {"id", call.id},
          {"name", call.name},
          {"arguments", arguments ? *arguments : Json(call.arguments)}};
}

// As gen_ai.input.messages has it.
Json AsJson(const Message& message) {
  Json parts = Json::array();
  if (message.role == Role::kTool) {
    parts.push_back(
        {{"type", "tool_call_response"}, {"id", message.tool_call_id}, {"response", message.content.value_or("")}});
  } else {
    if (message.content) parts.push_back(TextPart(*message.content));
    for (const ToolCall& call : message.tool_calls) parts.push_back(CallPart(call));
  }
  return {{"role", RoleName(message.role)}, {"parts", std::move(parts)}};
}

// The last ones: as many as an attribute has room for.
std::string AsJson(const std::vector<Message>& messages) {
  std::string all;
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    const std::string text = DumpJson(AsJson(*message));
    if (all.size() + text.size() + 3 > kMaxSpanContent) break;
    all.insert(0, all.empty() ? text : text + ",");
  }
  return "[" + all + "]";
}

// Of a client that a program has brought along: nobody else knows its interface.
std::string ProviderOf(const ModelService& service) { return service.provider.empty() ? "custom" : service.provider; }

void DescribeRequest(Span& span, const AgentParts& parts, const ModelRequest& request) {
  const ModelService service = parts.model.service();
  span.Set("gen_ai.operation.name", "chat");
  span.Set("gen_ai.provider.name", ProviderOf(service));
  span.Set("gen_ai.request.model", request.model);
  span.Set("gen_ai.request.stream", true);
  if (!service.address.empty()) {
    span.Set("server.address", service.address);
    span.Set("server.port", service.port);
  }
  if (!parts.conversation.empty()) span.Set("gen_ai.conversation.id", parts.conversation);
  if (!span.takes_content()) return;
  const auto seen = [&](std::string text) { return parts.guard ? parts.guard->Redacted(std::move(text)) : text; };
  if (!request.system.empty()) {
    span.SetContent("gen_ai.system_instructions", seen(DumpJson(Json::array({TextPart(std::string(request.system))}))));
  }
  span.SetContent("gen_ai.input.messages", seen(AsJson(request.messages)));
}

void DescribeResponse(Span& span, const AgentParts& parts, const TimedStream& stream, const ModelResponse& response) {
  const TokenUsage& usage = response.usage;
  span.Set("gen_ai.usage.input_tokens", usage.input_tokens);
  span.Set("gen_ai.usage.output_tokens", usage.output_tokens);
  span.Set("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens);
  span.Set("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens);
  const std::string reason = !response.truncated.empty()   ? response.truncated
                             : response.tool_calls.empty() ? "stop"
                                                           : "tool_calls";
  span.Set("gen_ai.response.finish_reasons", std::vector<std::string>{reason});
  if (!span.takes_content()) return;
  Json answer = {{"role", "assistant"}, {"parts", Json::array()}, {"finish_reason", reason}};
  if (!stream.text().empty()) answer["parts"].push_back(TextPart(stream.text()));
  for (const ToolCall& call : response.tool_calls) answer["parts"].push_back(CallPart(call));
  std::string text = "[" + DumpJson(answer) + "]";
  span.SetContent("gen_ai.output.messages", parts.guard ? parts.guard->Redacted(std::move(text)) : text);
}

}  // namespace

void DescribeAgent(Span& span, const char* agent, const ModelClient& model, const std::string& model_name) {
  if (!span) return;
  span.Set("gen_ai.operation.name", "invoke_agent");
  span.Set("gen_ai.agent.name", agent);
  span.Set("gen_ai.provider.name", ProviderOf(model.service()));
  span.Set("gen_ai.request.model", model_name);
}

void DescribeOutcome(Span& span, const AgentOutcome& outcome) {
  if (!span) return;
  span.Set("reprise.interaction.status", std::string(ToString(outcome.status)));
  span.Set("gen_ai.usage.input_tokens", outcome.usage.input_tokens);
  span.Set("gen_ai.usage.output_tokens", outcome.usage.output_tokens);
  if (outcome.error) span.Fail(outcome.error->reason, outcome.error->message);
}

Async<Result<ModelResponse>> AskModelClient(const AgentParts& parts, const ModelRequest& request, ModelStream& stream,
                                            std::stop_token stop, const Span& parent) {
  if (!parent) {
    FromCallback<Result<ModelResponse>> awaited(parts.executor, [&](ModelClient::Done done) {
      parts.model.Generate(request, stream, std::move(stop), std::move(done));
    });
    co_return co_await awaited;
  }
  Span span = parent.Child("chat " + request.model, SpanKind::kClient);
  DescribeRequest(span, parts, request);
  TimedStream timed(stream, span.takes_content());
  ModelRequest traced = request;
  if (span.tells_providers()) traced.traceparent = FormatTraceparent(span.context());
  FromCallback<Result<ModelResponse>> awaited(parts.executor, [&](ModelClient::Done done) {
    parts.model.Generate(traced, timed, std::move(stop), std::move(done));
  });
  Result<ModelResponse> response = co_await awaited;
  span.Stop();
  if (const auto seconds = timed.seconds_to_first()) span.Set("gen_ai.response.time_to_first_chunk", *seconds);
  if (response) {
    DescribeResponse(span, parts, timed, *response);
  } else {
    span.Fail(response.error().reason, response.error().message);
  }
  co_return response;
}

}  // namespace reprise
