#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "model/endpoint.h"
#include "model/tool_lessons.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

struct OpenAiOptions {
  std::string base_url = {};  // with the version: "https://api.openai.com/v1"
  std::string api_key = {};   // empty: no Authorization header
  std::string provider = {};  // its configured name, under which its own members of answers are kept
  std::chrono::milliseconds connect_timeout{10'000};
  // Longest wait for the next piece of the answer. Comments, pings and empty pieces do not count: if a provider sends
  // only those, the first one after the limit ends the request.
  std::chrono::milliseconds idle_timeout{120'000};
  std::vector<std::string> models = {};                       // for KnownModels
  std::map<std::string, ModelFacts, std::less<>> facts = {};  // of its models, from the configuration
  EndpointAdditions additions = {};
  WebSearchOptions web_search = {};
};

// Common parts of OpenAI's interfaces: address, credentials, models and tools.
class OpenAiService : public ModelClient {
 public:
  ModelService service() const override { return ServiceAt("openai", base_url_); }
  bool makes_drafts() const override { return true; }
  std::vector<std::string> KnownModels() const override { return options_.models; }
  std::vector<LeftOutTool> LeftOutTools() const override { return tools_->LeftOut(); }
  void ListModels(std::stop_token stop, Listed done) override;

 protected:
  // `transport` must outlive this.
  OpenAiService(Transport& transport, OpenAiOptions options);

  Transport& transport() const { return transport_; }
  const OpenAiOptions& options() const { return options_; }
  const std::shared_ptr<ToolLessons>& tools() const { return tools_; }
  // The model's configured facts; empty for other models. With this effort; kDefault: as configured.
  ModelFacts FactsOf(const std::string& model, Effort effort) const;
  // A request with a streamed answer, without its body.
  HttpRequest StreamRequest(std::string_view path, const ModelRequest& request) const;
  // Address and credentials, without the configured headers.
  HttpRequest MakeHttpRequest(std::string_view path) const;

 private:
  Transport& transport_;
  const OpenAiOptions options_;
  const std::string base_url_;  // without a trailing slash
  const std::shared_ptr<ToolLessons> tools_;
};

class ResponsesClient;

// A provider that speaks OpenAI's chat completions: OpenAI itself, and most local and hosted servers. If a model
// demands the Responses API (for tools beside reasoning, or at all), all its later requests go there, and the error is
// retryable. Calls the stream on the transport's thread. `refusal` is one (OnRefusal), `reasoning_content` and
// `reasoning` count as thinking. Never retries.
class OpenAiClient : public OpenAiService {
 public:
  // `transport` must outlive this.
  OpenAiClient(Transport& transport, OpenAiOptions options);
  ~OpenAiClient() override;

  void Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) override;
  std::vector<Wish> LeftOut(const std::string& model, const ModelWishes& wishes) const override;
  std::vector<LeftOutTool> LeftOutTools() const override;

 private:
  struct Refusals;

  // Members of answers that the provider has refused to take back, and models that need another form of request.
  const std::shared_ptr<Refusals> refusals_;
  const std::unique_ptr<ResponsesClient> responses_;
};

// A provider that speaks OpenAI's Responses API. Calls the stream on the transport's thread. Never retries. If a model
// rejects an optional part of a request (reasoning or a summary that it does not support), later requests omit it, and
// the error is retryable.
class ResponsesClient : public OpenAiService {
 public:
  // `transport` must outlive this.
  ResponsesClient(Transport& transport, OpenAiOptions options);

  void Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) override;
  std::vector<Wish> LeftOut(const std::string& model, const ModelWishes& wishes) const override;

 private:
  struct Refusals;

  const std::shared_ptr<Refusals> refusals_;
};

}  // namespace reprise
