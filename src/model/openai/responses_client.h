#pragma once

#include <memory>
#include <stop_token>

#include "model/openai/openai_service.h"

namespace reprise {

// A provider that speaks OpenAI's Responses API. Calls the stream on the transport's thread. Never retries. If a model
// rejects an optional part of a request (reasoning or a summary that it does not support), later requests omit it, and
// the error is retryable.
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
