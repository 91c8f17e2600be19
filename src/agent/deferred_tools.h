#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "reprise/message.h"
#include "reprise/tool.h"

namespace reprise {

inline constexpr std::string_view kSearchToolsName = "search_tools";

// Tools for an agent. If the descriptions of tools that are not built in take more than a tenth of the model's window,
// they are deferred: the model gets the tool search_tools in their place, and the description of a tool once
// it has found or called it. All of them can be called. Thread-safe.
class DeferredTools final : public ToolRegistry {
 public:
  // `all` must outlive this. `window` as in AgentLimits::context_window; 0: nothing is deferred.
  DeferredTools(const ToolRegistry& all, std::int64_t window) : all_(all), window_(window) {}
  std::shared_ptr<const ToolSet> Current() const override;

 private:
  const ToolRegistry& all_;
  const std::int64_t window_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const ToolSet> of_ GUARDED_BY(mutex_), current_ GUARDED_BY(mutex_);
};

// The names of deferred tools that the model has found or called, sorted. Depends only on the arguments, so the state
// of a chat need not hold them.
std::vector<std::string> FoundTools(const ToolSet& tools, const Messages& messages);

}  // namespace reprise
