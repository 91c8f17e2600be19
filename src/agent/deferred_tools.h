#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// Those tools of another set that `keeps` accepts; the others are as if they were not there.
class ToolSubset final : public ToolSet {
 public:
  ToolSubset(std::shared_ptr<const ToolSet> all, std::function<bool(const Tool&)> keeps, bool searches = true)
      : all_(std::move(all)), keeps_(std::move(keeps)), searches_(searches) {
    for (Tool* const tool : all_->tools()) {
      if (!keeps_(*tool)) continue;
      tools_.push_back(tool);
      specs_.push_back(tool->fixed_traits().spec);
    }
  }
  Tool* Find(std::string_view name) const override {
    Tool* const tool = all_->Find(name);
    return tool == nullptr || !keeps_(*tool) ? nullptr : tool;
  }
  Result<void> Validate(const Tool& tool, std::string_view arguments) const override {
    return all_->Validate(tool, arguments);
  }
  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }
  bool RequiresApproval(const Tool& tool) const override { return all_->RequiresApproval(tool); }
  bool AllowsWebSearch() const override { return searches_ && all_->AllowsWebSearch(); }

 private:
  const std::shared_ptr<const ToolSet> all_;
  const std::function<bool(const Tool&)> keeps_;
  const bool searches_;  // the web, if the other set does
  std::vector<Tool*> tools_;
  std::vector<ToolSpec> specs_;
};

}  // namespace reprise
