#include "tools/tool_set.h"

#include <fnmatch.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "tools/argument_schema.h"
#include "tools/builtin_tool.h"
#include "tools/http_get_tool.h"
#include "tools/read_tools.h"
#include "tools/search_tool.h"
#include "tools/shell_tool.h"
#include "tools/simple_tools.h"
#include "tools/workspace.h"
#include "tools/write_tools.h"

namespace reprise {
namespace {

bool MatchesAny(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

// A tool's schema, compiled when it is first needed: an idle server saves a megabyte and some of its start-up time.
class LazySchema {
 public:
  explicit LazySchema(std::string text) : text_(std::move(text)) {}

  Result<void> Check(std::string_view arguments) const {
    std::call_once(compiled_, [this] { schema_ = ArgumentSchema::Compile(text_); });
    if (!schema_) return Fail(ErrorCode::kInternal, "the tool's schema is not usable", schema_.error().message);
    return (*schema_)->Check(arguments);
  }

 private:
  const std::string text_;
  mutable std::once_flag compiled_;
  mutable Result<std::unique_ptr<ArgumentSchema>> schema_;  // constant after the first Check
};

class BuiltinToolRegistry final : public ToolRegistry {
 public:
  explicit BuiltinToolRegistry(const ToolOptions& options)
      : workspace_(options.workspace_directory, options.protected_paths) {
    Add(MakeEchoTool(), options);
    Add(MakeCalculatorTool(), options);
    Add(MakeCurrentTimeTool(&Now), options);
    Add(MakeListFilesTool(workspace_), options);
    Add(MakeReadFileTool(workspace_), options);
    Add(MakeSearchFilesTool(workspace_), options);
    Add(MakeWriteFileTool(workspace_), options);
    Add(MakeEditFileTool(workspace_), options);
    Add(MakeDeleteFileTool(workspace_), options);
    Add(MakeShellTool(workspace_, options.shell), options);
    Add(MakeHttpGetTool(options.transport, options.http), options);
  }

  Tool* Find(std::string_view name) const override {
    const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& candidate) { return candidate.tool->spec().name == name; });
    return entry == entries_.end() ? nullptr : entry->tool.get();
  }

  Result<void> Validate(const Tool& tool, std::string_view arguments) const override {
    const Entry* entry = EntryOf(tool);
    if (entry == nullptr) return Fail(ErrorCode::kInternal, "the tool is not one of this registry");
    return entry->schema->Check(arguments);
  }

  const std::vector<Tool*>& tools() const override { return tools_; }
  const std::vector<ToolSpec>& specs() const override { return specs_; }

  bool RequiresApproval(const Tool& tool) const override {
    const Entry* entry = EntryOf(tool);
    return entry == nullptr || entry->requires_approval;  // what is unknown asks
  }

 private:
  struct Entry {
    std::unique_ptr<BuiltinTool> tool;
    std::unique_ptr<LazySchema> schema;
    bool requires_approval;
  };

  void Add(std::unique_ptr<BuiltinTool> tool, const ToolOptions& options) {
    const ToolSpec& spec = tool->spec();
    if (!MatchesAny(options.allow, spec.name) || MatchesAny(options.deny, spec.name)) return;
    auto schema = std::make_unique<LazySchema>(spec.parameters);
    tools_.push_back(tool.get());
    specs_.push_back(spec);
    const bool asks = tool->asks_by_default() || MatchesAny(options.require_approval, spec.name);
    entries_.push_back({.tool = std::move(tool), .schema = std::move(schema), .requires_approval = asks});
  }

  const Entry* EntryOf(const Tool& tool) const {
    const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& candidate) { return candidate.tool.get() == &tool; });
    return entry == entries_.end() ? nullptr : &*entry;
  }

  // Constant after construction, but for the workspace, which synchronises itself. Tools refer to it: it goes last.
  Workspace workspace_;
  std::vector<Entry> entries_;
  std::vector<Tool*> tools_;
  std::vector<ToolSpec> specs_;
};

}  // namespace

std::unique_ptr<ToolRegistry> MakeBuiltinTools(ToolOptions options) {
  return std::make_unique<BuiltinToolRegistry>(options);
}

}  // namespace reprise
