#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "reprise/model_client.h"

namespace reprise {

// A tool's schema as providers take it: an object with `properties`, without combinations at the top (what these allow
// is allowed together), with `items` for every array, and without members that are null or of a type that does not
// exist. What it says of valid arguments beyond that is left to the tool.
std::string CompleteSchema(std::string_view schema);

// Which tools the models of one provider are told of: as many as it takes, and none that it has refused. Thread-safe.
class ToolLessons {
 public:
  // `most`: that a request may have; 0: as many as there are.
  explicit ToolLessons(std::size_t most) : most_(most) {}

  using Tools = std::shared_ptr<const std::vector<ToolSpec>>;
  // What a request to `model` has of these, with their schemas completed. Those that do not fit are named in the log.
  Tools TakenBy(const std::string& model, const std::vector<ToolSpec>& tools);
  // Of a refusal of a request that had `sent`. True if the next one leaves out what was refused.
  bool Learn(const std::string& model, const std::vector<ToolSpec>& sent, const Error& error);
  std::vector<LeftOutTool> LeftOut() const;

 private:
  struct Model {
    std::map<std::string, std::string, std::less<>> refused{};  // tools, with the provider's words
    std::size_t most = 0;
    std::vector<std::string> beyond{};  // `most`, in the last request
    std::size_t hash = 0;               // of what `taken` was made of
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
