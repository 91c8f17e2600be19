#include "tools/files/path_tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/path.h"
#include "base/terminal_text.h"
#include "base/try.h"
#include "tools/arguments.h"
#include "tools/text_file.h"

namespace reprise {

namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

bool IsDirectory(int parent, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status {};
  return ::fstatat(parent, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Result<DirectoryListing> ReadDirectory(const Workspace& workspace, int directory, std::size_t max_entries) {
  // The stream owns its descriptor, and a fresh one starts at the first entry.
  UniqueFd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return Fail(WorkspaceError(errno));
  const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(own.get()));
  if (!stream) return Fail(WorkspaceError(errno));
  own.Release();

  DirectoryListing listing;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) return Fail(WorkspaceError(errno));
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || workspace.IsProtected(directory, name)) continue;
    if (listing.entries.size() == max_entries) {
      listing.complete = false;
      break;
    }
    listing.entries.push_back({.name = std::string(name), .is_directory = IsDirectory(directory, *entry)});
  }
  std::ranges::sort(listing.entries, {}, &ListedEntry::name);
  return listing;
}

namespace {

constexpr std::size_t kMaxBytes = 8 * 1024 * 1024;

Result<std::string> FullPath(const Workspace& workspace, std::string_view path) {
  return workspace.directory() + (workspace.directory().ends_with('/') ? "" : "/") +
         TRY(workspace.PathInWorkspace(path));
}

}  // namespace

std::optional<std::string> TextInEditor(const Workspace& workspace, std::string_view path, const ToolContext& context) {
  if (context.editor == nullptr) return std::nullopt;
  const auto full = FullPath(workspace, path);
  if (!full) return std::nullopt;
  auto text = context.editor->Read(*full, context.stop);
  if (!text || text->size() > kMaxBytes || !LooksLikeText(*text)) return std::nullopt;
  return text;
}

std::optional<std::string> UnsavedText(const Workspace& workspace, std::string_view path, const ToolContext& context) {
  if (context.editor == nullptr) return std::nullopt;
  // Apply the rules of a change, so that a file that may not be changed on the disk is not changed in the editor
  // either.
  const auto on_disk = workspace.ReadForChange(path, kMaxBytes, OpenIfAsked(context));
  if (!on_disk || !*on_disk) return std::nullopt;
  auto text = TextInEditor(workspace, path, context);
  return text && *text != **on_disk ? text : std::nullopt;
}

Result<std::string> ChangeInEditor(const Workspace& workspace, std::string_view path, const std::string& content,
                                   const ToolContext& context) {
  const auto written = context.editor->Write(TRY(FullPath(workspace, path)), content, context.stop);
  if (!written && written.error().code == ErrorCode::kUnavailable) {
    return Fail(ErrorCode::kConflict,
                "it is open in an editor with changes that are not saved; ask the user to save it, then try again");
  }
  if (!written) return Fail(written.error());
  const auto on_disk = workspace.ReadForChange(path, kMaxBytes, OpenIfAsked(context));
  const bool is_saved = on_disk && *on_disk && **on_disk == content;
  return std::string(" in the editor, which had changes that were not saved") +
         (is_saved ? "" : "; it is not saved yet, so commands see the file as it was");
}

namespace {

constexpr std::string_view kBelow = "**";
constexpr std::size_t kMaxFolders = 2;  // to propose

// The names on a relative path whose target is plain: no "..", no empty name, no hidden characters or characters that
// mean something in a pattern.
std::optional<std::vector<std::string>> PlainNames(std::string_view path) {
  std::vector<std::string> names;
  if (path.starts_with("./")) path.remove_prefix(2);
  if (path.empty() || VisibleOnOneLine(path) != path) return std::nullopt;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    const bool is_plain =
        !name.empty() && name != "." && name != ".." && name.find_first_of("*?[]\\") == std::string::npos;
    if (!is_plain) return std::nullopt;
    names.emplace_back(name);
    at = end + 1;
  }
  return names;
}

std::string Joined(const std::vector<std::string>& names, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < count; ++i) path += (i == 0 ? "" : "/") + names[i];
  return path;
}

struct PathPattern {
  std::vector<std::string> names;
  bool is_below = false;  // means everything below that folder
};

Result<PathPattern> Parse(std::string_view text) {
  PathPattern pattern;
  if (text == kBelow) return PathPattern{.names = {}, .is_below = true};
  if (text.ends_with("/**")) {
    pattern.is_below = true;
    text.remove_suffix(3);
  }
  auto names = PlainNames(text);
  if (!names || text.starts_with("./")) {
    return Fail(ErrorCode::kInvalidArgument,
                "it must be the path of a file, relative to the workspace and without \"..\" or *, or of a folder with "
                "/** behind it");
  }
  pattern.names = *std::move(names);
  return pattern;
}

bool BeginsWith(const std::vector<std::string>& names, const std::vector<std::string>& folder) {
  return names.size() >= folder.size() && std::equal(folder.begin(), folder.end(), names.begin());
}

// A folder's pattern does not cover names that begin with a dot, because other programs often read those files.
bool Covers(const PathPattern& pattern, const std::vector<std::string>& names) {
  if (!pattern.is_below) return names == pattern.names;
  return names.size() > pattern.names.size() && BeginsWith(names, pattern.names) &&
         std::none_of(names.begin() + static_cast<std::ptrdiff_t>(pattern.names.size()), names.end(),
                      [](const std::string& name) { return name.starts_with('.'); });
}

}  // namespace

std::vector<std::string> PathTool::PathsOf(std::string_view arguments, std::string_view otherwise) const {
  return {Arguments(arguments).String("path").value_or(std::string(otherwise))};
}

std::vector<CallPattern> PathTool::PatternsOf(std::string_view arguments) const {
  std::vector<CallPattern> patterns;
  const auto paths = PathsOf(arguments, "");
  const auto names = paths.empty() ? std::nullopt : PlainNames(paths.front());
  if (!names) return patterns;
  const auto offer = [&](std::string pattern) {
    auto meaning = MeaningOf(pattern, PatternUse::kAllow);
    if (meaning && CoveredBy({pattern}, arguments)) patterns.push_back({std::move(pattern), *std::move(meaning)});
  };
  offer(Joined(*names, names->size()));
  const std::size_t folders = names->size() - 1;
  for (std::size_t i = 0; i < std::min(folders, kMaxFolders); ++i) {
    // The path's folder, and its topmost folder in the workspace.
    const std::size_t count = i == 0 ? folders : 1;
    if (i == 0 || folders > 1) offer(Joined(*names, count) + "/**");
  }
  return patterns;
}

Result<std::string> PathTool::MeaningOf(std::string_view text, PatternUse use) const {
  const auto pattern = TRY(Parse(text));
  const std::string& name = spec().name;
  const std::string folder =
      pattern.names.empty() ? "the workspace" : QuotedPath(Joined(pattern.names, pattern.names.size()));
  if (use == PatternUse::kHold) {
    return "Every call of " + name + " on " + folder + (pattern.is_below ? " or anything below it." : ".");
  }
  const std::string what = name + " on ";
  std::string links = fixed_traits().read_only ? "; links that stay in the workspace are followed" : "";
  if (reaches_below_) links += "; of a folder it reads all that is in it";
  links += ".";
  if (!pattern.is_below) return "Runs " + what + folder + " alone, whatever else the call says" + links;
  return "Runs " + what + "any file or folder below " + folder +
         ", but none whose name begins with a dot, or that lies in such a folder" + links;
}

std::optional<std::vector<std::size_t>> PathTool::CoveredBy(const std::vector<std::string>& patterns,
                                                            std::string_view arguments) const {
  std::vector<std::size_t> covering;
  const auto paths = PathsOf(arguments, "");
  for (const std::string& path : paths) {
    const auto index = CoveringOne(patterns, path);
    if (!index) return std::nullopt;
    if (std::ranges::find(covering, *index) == covering.end()) covering.push_back(*index);
  }
  return paths.empty() ? std::nullopt : std::optional(std::move(covering));
}

std::optional<std::size_t> PathTool::CoveringOne(const std::vector<std::string>& patterns,
                                                 const std::string& path) const {
  const auto names = PlainNames(path);
  if (!names) return std::nullopt;
  // Changes follow no links. Reads do, so their target must be covered too.
  std::vector<std::vector<std::string>> places{*names};
  if (fixed_traits().read_only) {
    for (const std::string& place : place_.PlacesOf(path)) places.push_back(NamesOnPath(place));
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto pattern = Parse(patterns[i]);
    if (pattern && std::ranges::all_of(places, [&](const auto& each) { return Covers(*pattern, each); })) {
      return i;
    }
  }
  return std::nullopt;
}

Touch PathTool::Touches(std::string_view text, std::string_view arguments) const {
  const auto pattern = Parse(text);
  const auto paths = PathsOf(arguments, ".");
  if (!pattern || paths.empty()) return Touch::kMaybe;
  Touch touch = Touch::kNo;
  for (const std::string& path : paths) {
    const auto places = place_.PlacesOf(path);
    if (places.empty()) touch = Touch::kMaybe;  // outside, out of any tool's reach
    for (const std::string& place : places) {
      const auto names = NamesOnPath(place);
      const bool is_it = pattern->is_below ? BeginsWith(names, pattern->names) : names == pattern->names;
      if (is_it) return Touch::kYes;
      // A folder above the pattern, because searching it reads its content.
      if (fixed_traits().read_only && BeginsWith(pattern->names, names)) touch = Touch::kMaybe;
    }
  }
  return touch;
}

}  // namespace reprise
