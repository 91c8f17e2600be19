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
  bool is_directory = false;  // a symbolic link is none, whatever it points to
};

struct DirectoryListing {
  std::vector<ListedEntry> entries;  // by name; without "." and "..", and without what is protected
  bool complete = true;              // false: there were more than `max_entries`
};

// What is in a directory that was opened by the workspace.
Result<DirectoryListing> ReadDirectory(const Workspace& workspace, int directory, std::size_t max_entries);

// Files that somebody edits while the agent works: what is in the editor and not saved yet counts.

// What the editor has of a file that was opened by the workspace's rules; nullopt: nothing that is text.
std::optional<std::string> TextInEditor(const Workspace& workspace, std::string_view path, const ToolContext& context);

// The same of a file that is to be changed, if it is there and the editor has something else than the disk: then the
// change is the editor's to make, as one on the disk would have its person choose between two texts. nullopt: the
// disk's.
std::optional<std::string> UnsavedText(const Workspace& workspace, std::string_view path, const ToolContext& context);

// Has the editor put `content` in the place of what it has. What the model is told behind what was done; the error is
// for it, too.
Result<std::string> ChangeInEditor(const Workspace& workspace, std::string_view path, const std::string& content,
                                   const ToolContext& context);

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
