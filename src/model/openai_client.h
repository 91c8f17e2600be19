#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

struct OpenAiOptions {
  std::string base_url = {};  // with the version: "https://api.openai.com/v1"
  std::string api_key = {};   // empty: no Authorization header
  std::chrono::milliseconds connect_timeout{10'000};
  // Longest wait for the next event. Comments and pings are no events: a provider that sends only those is given up
  // when the first of them after the limit arrives.
  std::chrono::milliseconds idle_timeout{120'000};
  std::vector<std::string> models = {};  // for KnownModels
};

// A provider that speaks OpenAI's chat completions: OpenAI itself, and most local and hosted servers. The stream is
// called on the transport's thread. `refusal` counts as text, `reasoning_content` and `reasoning` as thinking. Never
// retries.
class OpenAiClient : public ModelClient {
 public:
  // `transport` must outlive this.
  OpenAiClient(Transport& transport, OpenAiOptions options);

  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override;
  std::vector<std::string> KnownModels() const override { return options_.models; }
  void ListModels(std::stop_token stop, Listed done) override;

 private:
  HttpRequest MakeHttpRequest(std::string_view path) const;

  Transport& transport_;
  const OpenAiOptions options_;
  const std::string base_url_;  // without a slash at its end
};

}  // namespace reprise
