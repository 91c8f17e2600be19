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
};

// Common parts of OpenAI's interfaces: address, credentials, models and tools.
class OpenAiService : public ModelClient {
 public:
  ModelService service() const override { return ServiceAt("openai", base_url_); }
  std::vector<std::string> KnownModels() const override { return options_.models; }
  std::vector<LeftOutTool> LeftOutTools() const override { return tools_->LeftOut(); }
  void ListModels(std::stop_token stop, Listed done) override;

 protected:
  // `transport` must outlive this.
  OpenAiService(Transport& transport, OpenAiOptions options);

  Transport& transport() const { return transport_; }
  const OpenAiOptions& options() const { return options_; }
  const std::shared_ptr<ToolLessons>& tools() const { return tools_; }
  // The model's configured facts; empty for other models.
  ModelFacts FactsOf(const std::string& model) const;
  // A request with a streamed answer, without its body.
  HttpRequest StreamRequest(std::string_view path, const ModelRequest& request) const;

 private:
  HttpRequest MakeHttpRequest(std::string_view path) const;

  Transport& transport_;
  const OpenAiOptions options_;
  const std::string base_url_;  // without a trailing slash
  const std::shared_ptr<ToolLessons> tools_;
};

}  // namespace reprise
