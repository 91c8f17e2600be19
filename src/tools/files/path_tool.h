#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tool.h"
#include "tools/builtin_tools.h"
#include "tools/files/workspace.h"

namespace reprise {

struct ListedEntry {
  std::string name;
  bool is_directory = false;  // false for a symbolic link, whatever its target
};

struct DirectoryListing {
  std::vector<ListedEntry> entries;  // by name; without ".", ".." and protected entries
  bool complete = true;              // false if there were more than `max_entries`
};

// Lists a directory that the workspace opened.
Result<DirectoryListing> ReadDirectory(const Workspace& workspace, int directory, std::size_t max_entries);

// For files open in an editor while the agent works, the editor's unsaved text counts.

// The editor's text of a file that the workspace's rules allow to read; nullopt if it has no text.
std::optional<std::string> TextInEditor(const Workspace& workspace, std::string_view path, const ToolContext& context);

// The same for a file to be changed, if it exists and the editor's text differs from the disk's. The editor must then
// make the change, because a change on the disk would leave its user with two texts. nullopt: change the disk.
std::optional<std::string> UnsavedText(const Workspace& workspace, std::string_view path, const ToolContext& context);

// Has the editor replace its text by `content`. Returns text for the model to append to the result; the error is for
// the model too.
Result<std::string> ChangeInEditor(const Workspace& workspace, std::string_view path, const std::string& content,
                                   const ToolContext& context);

// A tool that works on the file or folder named by its argument `path`, or on several (PathsOf). Its patterns are paths
// below the workspace: "src/main.cc" is that file, "src/**" is everything below that folder, "**" all of the workspace.
class PathTool : public BuiltinTool {
 public:
  std::vector<CallPattern> PatternsOf(std::string_view arguments) const override;
  Result<std::string> MeaningOf(std::string_view pattern, PatternUse use) const override;
  std::optional<std::vector<std::size_t>> CoveredBy(const std::vector<std::string>& patterns,
                                                    std::string_view arguments) const override;
  Touch Touches(std::string_view pattern, std::string_view arguments) const override;

 protected:
  // The paths that a call works on; empty if that is unknown. The default is its argument `path`, or `otherwise`.
  virtual std::vector<std::string> PathsOf(std::string_view arguments, std::string_view otherwise) const;

  // `reaches_below`: if given a folder, the tool reads everything in it.
  PathTool(ToolTraits traits, const Workspace& workspace, bool reaches_below = false)
      : BuiltinTool(std::move(traits)), place_(workspace), reaches_below_(reaches_below) {}

 private:
  std::optional<std::size_t> CoveringOne(const std::vector<std::string>& patterns, const std::string& path) const;

  const Workspace& place_;
  const bool reaches_below_;
};

}  // namespace reprise
