#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "reprise/tool.h"

namespace reprise {

class FakeTool : public Tool {
 public:
  using Body = std::function<ToolOutcome(std::string_view, const ToolContext&)>;
  using Preview = std::function<Result<FileChange>(std::string_view)>;
  FakeTool(ToolTraits traits, Body body) : traits_(std::move(traits)), body_(std::move(body)) {}
  const ToolTraits& traits() const override { return traits_; }
  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override { return body_(arguments, context); }
  Result<FileChange> PreviewChange(std::string_view arguments) const override {
    return preview ? preview(arguments) : Tool::PreviewChange(arguments);
  }

  Preview preview = {};  // to be set before use

 private:
  const ToolTraits traits_;
  const Body body_;
};

// Tools made of functions. Their arguments must be JSON objects; nothing else is checked. Fill it before use.
class FakeTools : public ToolRegistry, private ToolSet {
 public:
  std::shared_ptr<const ToolSet> Current() const override { return {std::shared_ptr<void>(), this}; }
  void Add(const std::string& name, bool requires_approval, FakeTool::Body body) {
    ToolTraits traits;
    traits.spec = {name, "a fake", R"({"type":"object"})"};
    traits.read_only = !requires_approval;
    traits.requires_approval = requires_approval;
    traits.approval_reason = "it is dangerous";
    traits.risk = requires_approval ? Risk::kHigh : Risk::kLow;
    Add(std::move(traits), std::move(body));
  }
  FakeTool& Add(ToolTraits traits, FakeTool::Body body) {
    specs_.push_back(traits.spec);
    owned_.push_back(std::make_unique<FakeTool>(std::move(traits), std::move(body)));
    tools_.push_back(owned_.back().get());
    return *owned_.back();
  }
  Tool* Find(std::string_view name) const override {
    for (Tool* tool : tools_) {
      if (tool->traits().spec.name == name) return tool;
    }
    return nullptr;
  }
  Result<void> Validate(const Tool&, std::string_view arguments) const override {
    if (!arguments.empty() && arguments.front() != '{') return Fail(ErrorCode::kInvalidArgument, "not an object");
    return {};
  }
  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }
  bool RequiresApproval(const Tool& tool) const override { return tool.traits().requires_approval; }

 private:
  std::vector<std::unique_ptr<FakeTool>> owned_;
  std::vector<Tool*> tools_;
  std::vector<ToolSpec> specs_;
};

}  // namespace reprise
