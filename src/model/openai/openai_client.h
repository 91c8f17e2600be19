#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/endpoint.h"
#include "reprise/model_client.h"
#include "reprise/transport.h"

namespace reprise {

struct OpenAiOptions {
  std::string base_url = {};  // with the version: "https://api.openai.com/v1"
  std::string api_key = {};   // empty: no Authorization header
  std::string provider = {};  // its configured name, under which its own members of answers are kept
  std::chrono::milliseconds connect_timeout{10'000};
  // Longest wait for the next piece of the answer. Comments, pings and empty pieces are none: a provider that sends
  // only those is given up when the first of them after the limit arrives.
  std::chrono::milliseconds idle_timeout{120'000};
  std::vector<std::string> models = {};  // for KnownModels
  EndpointAdditions additions = {};
};

// A provider that speaks OpenAI's chat completions: OpenAI itself, and most local and hosted servers. The stream is
// called on the transport's thread. `refusal` counts as text, `reasoning_content` and `reasoning` as thinking. Never
// retries.
class OpenAiClient : public ModelClient {
 public:
  // `transport` must outlive this.
  OpenAiClient(Transport& transport, OpenAiOptions options);

  void Generate(const ModelRequest& request, ModelStream& stream, std::stop_token stop, Done done) override;
  ModelService service() const override { return ServiceAt("openai", base_url_); }
  std::vector<std::string> KnownModels() const override { return options_.models; }
  void ListModels(std::stop_token stop, Listed done) override;

 private:
  struct Refusals;
  HttpRequest MakeHttpRequest(std::string_view path) const;

  Transport& transport_;
  const OpenAiOptions options_;
  const std::string base_url_;  // without a slash at its end
  // Members of answers that the provider has said it does not take back.
  const std::shared_ptr<Refusals> refusals_;
};

}  // namespace reprise
