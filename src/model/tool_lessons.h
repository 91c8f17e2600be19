#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "reprise/model_client.h"
#include "reprise/options.h"

namespace reprise {

// A tool's schema in a form that providers accept: an object with `properties`, with `items` for every array, without
// null members and unknown types, and without combinations at the top, whose branches are merged. The merged schema may
// allow more arguments than the original; the tool itself checks the rest.
std::string CompleteSchema(std::string_view schema);

// The tools to offer to a provider's models: as many as it accepts, without those it has rejected. Thread-safe.
class ToolLessons {
 public:
  // `most`: the maximum per request; 0: unlimited.
  explicit ToolLessons(std::size_t most) : most_(most) {}

  using Tools = std::shared_ptr<const std::vector<ToolSpec>>;
  // The tools for a request to `model`, with completed schemas. Logs the names of those beyond the maximum.
  Tools TakenBy(const std::string& model, const std::vector<ToolSpec>& tools);
  // Learns from the error of a request with the tools `sent`. True if the next request omits the rejected part.
  bool Learn(const std::string& model, const std::vector<ToolSpec>& sent, const Error& error);
  // Whether a request offers the provider's web search: it is on and wanted, no tool has its name, and the model has
  // not rejected it.
  bool OffersSearch(const WebSearchOptions& search, const ModelRequest& request) const;
  // Learns from the error of a request that offered it. True if the next request omits it.
  bool LearnSearch(const std::string& model, const Error& error);
  std::vector<LeftOutTool> LeftOut() const;

 private:
  struct Model {
    std::map<std::string, std::string, std::less<>> refused{};  // rejected tools, with the provider's message
    std::size_t most = 0;
    std::vector<std::string> beyond{};  // the tools beyond `most` in the last request
    std::vector<ToolSpec> told{};       // from which `taken` was built
    Tools taken{};
  };
  std::size_t MostOf(const Model& model) const;

  const std::size_t most_;
  mutable Mutex mutex_;
  std::map<std::string, Model, std::less<>> models_ GUARDED_BY(mutex_);
};

// The same request with other messages and tools.
ModelRequest WithHistoryAndTools(const ModelRequest& request, const Messages& messages,
                                 const std::vector<ToolSpec>& tools);

}  // namespace reprise
