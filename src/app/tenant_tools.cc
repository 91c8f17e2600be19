#include "app/tenant_tools.h"

#include <utility>

namespace reprise {
namespace {

class ConsentedTools final : public ToolSet {
 public:
  explicit ConsentedTools(std::shared_ptr<const ToolSet> all) : all_(std::move(all)) {
    for (std::size_t i = 0; i < all_->tools().size(); ++i) {
      Tool* const tool = all_->tools()[i];
      if (tool->traits().needs_consent) continue;
      tools_.push_back(tool);
      specs_.push_back(all_->specs()[i]);
    }
  }
  Tool* Find(std::string_view name) const override {
    Tool* const tool = all_->Find(name);
    return tool == nullptr || tool->traits().needs_consent ? nullptr : tool;
  }
  Result<void> Validate(const Tool& tool, std::string_view arguments) const override {
    return all_->Validate(tool, arguments);
  }
  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }
  bool RequiresApproval(const Tool& tool) const override { return all_->RequiresApproval(tool); }

 private:
  const std::shared_ptr<const ToolSet> all_;
  std::vector<Tool*> tools_;
  std::vector<ToolSpec> specs_;
};

}  // namespace

std::shared_ptr<const ToolSet> TenantTools::With(const std::vector<std::shared_ptr<Tool>>& more) const {
  return std::make_shared<ConsentedTools>(all_.With(more));
}

std::shared_ptr<const ToolSet> TenantTools::Current() const {
  auto base = all_.Current();
  const MutexLock lock(mutex_);
  if (base != base_) {
    base_ = base;
    current_ = std::make_shared<ConsentedTools>(std::move(base));
  }
  return current_;
}

}  // namespace reprise
