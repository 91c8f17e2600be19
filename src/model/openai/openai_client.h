#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "model/openai/openai_service.h"

namespace reprise {

class ResponsesClient;

// A provider that speaks OpenAI's chat completions: OpenAI itself, and most local and hosted servers. If a model
// demands the Responses API (for tools beside reasoning, or at all), all its later requests go there, and the error is
// retryable. Calls the stream on the transport's thread. `refusal` counts as text, `reasoning_content` and `reasoning`
// as thinking. Never retries.
class OpenAiClient : public OpenAiService {
 public:
  // `transport` must outlive this.
  OpenAiClient(Transport& transport, OpenAiOptions options);
  ~OpenAiClient() override;

  void Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) override;
  std::vector<LeftOutTool> LeftOutTools() const override;

 private:
  struct Refusals;

  // Members of answers that the provider has refused to take back, and models that need another form of request.
  const std::shared_ptr<Refusals> refusals_;
  const std::unique_ptr<ResponsesClient> responses_;
};

}  // namespace reprise
