#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/builtin_tool.h"
#include "tools/files/workspace.h"

namespace reprise {

// A tool that works on the file or folder named by its argument `path`. Its patterns are paths below the workspace:
// "src/main.cc" is that file, "src/**" is everything below that folder, "**" all of the workspace.
class PathTool : public BuiltinTool {
 public:
  std::vector<CallPattern> PatternsOf(std::string_view arguments) const override;
  Result<std::string> MeaningOf(std::string_view pattern, PatternUse use) const override;
  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns,
                                                    std::string_view arguments) const override;
  Touch Touches(std::string_view pattern, std::string_view arguments) const override;

 protected:
  // `reaches_below`: given a folder, it reads all that is in it.
  PathTool(ToolTraits traits, const Workspace& workspace, bool reaches_below = false)
      : BuiltinTool(std::move(traits)), place_(workspace), reaches_below_(reaches_below) {}

 private:
  const Workspace& place_;
  const bool reaches_below_;
};

}  // namespace reprise
