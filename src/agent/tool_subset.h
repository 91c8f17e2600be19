#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/tool.h"

namespace reprise {

// Those tools of another set that `keeps` accepts; the others are as if they were not there.
class ToolSubset final : public ToolSet {
 public:
  ToolSubset(std::shared_ptr<const ToolSet> all, std::function<bool(const Tool&)> keeps, bool searches = true)
      : all_(std::move(all)), keeps_(std::move(keeps)), searches_(searches) {
    for (Tool* const tool : all_->tools()) {
      if (!keeps_(*tool)) continue;
      tools_.push_back(tool);
      specs_.push_back(tool->traits().spec);
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
