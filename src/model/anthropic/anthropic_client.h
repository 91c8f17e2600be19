#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/endpoint.h"
#include "model/tool_lessons.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"

namespace reprise {

struct AnthropicOptions {
  std::string base_url = {};  // "https://api.anthropic.com", with or without "/v1"
  std::string api_key = {};   // empty: no x-api-key header
  std::string provider = {};  // its configured name, under which its answers' blocks are kept
  std::chrono::milliseconds connect_timeout{10'000};
  // Longest wait for the next piece of the answer, as in OpenAiOptions. A "ping" does not count as a piece.
  std::chrono::milliseconds idle_timeout{120'000};
  std::vector<std::string> models = {};                       // for KnownModels
  std::map<std::string, ModelFacts, std::less<>> facts = {};  // the configured ones, by the provider's own names
  EndpointAdditions additions = {};
  WebSearchOptions web_search = {};
};

// Anthropic's Messages API (version 2023-06-01), and servers that speak it. Calls the stream on the transport's thread.
// Never retries. If a model rejects an optional part of a request, later requests omit or change it, and the error is
// retryable.
class AnthropicClient : public ModelClient {
 public:
  // `transport` must outlive this.
  AnthropicClient(Transport& transport, AnthropicOptions options);

  void Generate(const ModelRequest& asked, ModelStream& stream, std::stop_token stop, Done done) override;
  ModelService service() const override { return ServiceAt("anthropic", base_url_); }
  bool makes_drafts() const override { return true; }
  std::vector<std::string> KnownModels() const override { return options_.models; }
  std::vector<LeftOutTool> LeftOutTools() const override { return tools_->LeftOut(); }
  std::vector<Wish> LeftOut(const std::string& model, const ModelWishes& wishes) const override;
  void ListModels(std::stop_token stop, Listed done) override;

  struct Lessons;  // in the source file

 private:
  HttpRequest MakeHttpRequest(std::string_view path) const;
  // With this effort; kDefault: as configured.
  ModelFacts FactsOf(const std::string& model, Effort effort) const;

  Transport& transport_;
  const AnthropicOptions options_;
  const std::string base_url_;  // includes the version, without a trailing slash
  const std::shared_ptr<Lessons> lessons_;
  const std::shared_ptr<ToolLessons> tools_;
};

}  // namespace reprise
