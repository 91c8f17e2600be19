#pragma once

#include <memory>
#include <stop_token>

#include "model/openai/openai_service.h"

namespace reprise {

// A provider that speaks OpenAI's Responses API. The stream is called on the transport's thread. Never retries; what a
// model refuses for a reason that the next request can do without (reasoning it does not have, a summary that it does
// not give) is left out from then on, and the error is retryable.
class ResponsesClient : public OpenAiService {
 public:
  // `transport` must outlive this.
  ResponsesClient(Transport& transport, OpenAiOptions options);

  void Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) override;

 private:
  struct Refusals;

  const std::shared_ptr<Refusals> refusals_;
};

}  // namespace reprise
