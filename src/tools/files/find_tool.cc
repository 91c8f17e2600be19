#include <fcntl.h>
#include <re2/re2.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/files/path_tool.h"
#include "tools/files/workspace_walk.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

constexpr std::size_t kMostShown = 200;
constexpr std::size_t kMostAlternatives = 100;
constexpr std::size_t kMaxPattern = 1'000;
constexpr std::int64_t kGlobMemory = 8 * 1024 * 1024;

// "a{b,c}d" as "abd" and "acd". Braces without a comma or an end mean themselves. Empty if there are too many.
std::vector<std::string> Alternatives(const std::string& pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string::npos; open = pattern.find('{', open + 1)) {
    std::vector<std::string> parts(1);
    std::size_t end = open + 1, depth = 1;
    for (; end < pattern.size(); ++end) {
      const char c = pattern[end];
      if (c == '{') ++depth;
      if (c == '}') --depth;
      if (depth == 0) break;
      if (c == ',' && depth == 1) {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    if (end == pattern.size() || parts.size() < 2) continue;
    std::vector<std::string> all;
    for (const std::string& part : parts) {
      const auto more = Alternatives(pattern.substr(0, open) + part + pattern.substr(end + 1));
      if (more.empty() || all.size() + more.size() > kMostAlternatives) return {};
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
  return {pattern};
}

struct FoundFile {
  std::string path;
  std::int64_t modified_ns;
};

bool IsNewer(const FoundFile& a, const FoundFile& b) {
  return a.modified_ns != b.modified_ns ? a.modified_ns > b.modified_ns : a.path < b.path;
}
bool IsBefore(const FoundFile& a, const FoundFile& b) { return a.path < b.path; }

// The first files in an order, and how many there are.
class First {
 public:
  explicit First(bool by_name) : order_(by_name ? IsBefore : IsNewer) {}

  void Add(FoundFile file) {
    ++count_;
    files_.push_back(std::move(file));
    if (files_.size() >= 2 * kMostShown) Cut();
  }
  const std::vector<FoundFile>& Taken() {
    Cut();
    return files_;
  }
  std::size_t count() const { return count_; }

 private:
  void Cut() {
    std::ranges::sort(files_, order_);
    if (files_.size() > kMostShown) files_.resize(kMostShown);
  }

  bool (*const order_)(const FoundFile&, const FoundFile&);
  std::vector<FoundFile> files_;
  std::size_t count_ = 0;
};

class FindFilesTool final : public PathTool {
 public:
  explicit FindFilesTool(const Workspace& workspace)
      : PathTool({.spec = {.name = "find_files",
                           .description =
                               "Finds files of the workspace by a glob pattern, in all directories below; one path per "
                               "line, the last modified first. Leaves out files that .gitignore names, and names that "
                               "begin with a dot unless the pattern has such a name.",
                           .parameters = R"({"type":"object","additionalProperties":false,"required":["pattern"],
"properties":{"pattern":{"type":"string","minLength":1,"maxLength":1000,
"description":"Glob: * and ? within a name, ** for any directories, [a-z], {a,b}. Without a slash it is for names in any directory: *.py. With one it is for the path: src/**/*.{h,cc}."},
"path":{"type":"string","maxLength":4096,"description":"Directory to search, relative to the workspace. Default: the whole workspace."},
"sort":{"type":"string","enum":["modified","name"],"description":"Default: modified, the newest first."},
"hidden":{"type":"boolean","description":"Also names that begin with a dot. Default: false."},
"ignored":{"type":"boolean","description":"Also files that .gitignore names. Default: false."}}})"},
                  .approval_reason = "lists files of the workspace",
                  .terms = workspace.directory()},
                 workspace, /*reaches_below=*/true),
        workspace_(workspace),
        ignored_(workspace) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskFor(workspace_, arguments);
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    std::string path = given.String("path").value_or(".");
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (path.empty() || path == workspace_.directory()) path = ".";
    const auto place = path == "." ? Result<std::string>("") : workspace_.PathInWorkspace(path);
    if (!place) return ToolFailure("cannot search " + QuotedPath(path) + ": " + place.error().message);
    const std::string pattern = given.String("pattern").value_or("");
    const auto regex = RegexOf(pattern);
    if (!regex) return ToolFailure("cannot use the pattern: " + regex.error().message);

    const Secrets secrets = workspace_.LeadsToSecret(path) ? OpenIfAsked(context) : Secrets::kClosed;
    WorkspaceWalk walk(workspace_, ignored_,
                       {.until = std::chrono::steady_clock::now() + context.timeout,
                        .stop = context.stop,
                        .with_ignored = given.Boolean("ignored").value_or(false),
                        .with_hidden = given.Boolean("hidden").value_or(false) || NamesHidden(pattern)});
    First first(given.String("sort") == "name");
    const std::size_t below = place->empty() ? 0 : place->size() + 1;
    const auto walked = walk.Through(path, secrets, [&](std::string found, int directory, const char* name) {
      if (!RE2::FullMatch(re2::StringPiece(found).substr(below), **regex)) return;
      struct stat status {};
      if (workspace_.IsProtected(directory, name) || ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
      }
      first.Add({std::move(found), std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec});
    });
    if (!walked) return ToolFailure("cannot search " + QuotedPath(path) + ": " + walked.error().message);
    return Outcome(first, walk.complete(), context);
  }

 private:
  // Whether a name in the pattern begins with a dot.
  static bool NamesHidden(const std::string& pattern) {
    for (std::size_t at = pattern.find('.'); at != std::string::npos; at = pattern.find('.', at + 1)) {
      const char before = at == 0 ? '/' : pattern[at - 1];
      const bool begins = before == '/' || before == '{' || before == ',';
      const char after = at + 1 < pattern.size() ? pattern[at + 1] : '/';
      if (begins && after != '/' && after != '.') return true;
    }
    return false;
  }

  Result<std::unique_ptr<RE2>> RegexOf(std::string pattern) const {
    if (pattern.starts_with("./")) pattern.erase(0, 2);
    if (pattern.starts_with(workspace_.directory() + "/")) pattern.erase(0, workspace_.directory().size());
    std::string regex;
    for (const std::string& each : Alternatives(pattern)) {
      const std::string one = each.ends_with('/') ? std::string() : PatternToRegex(each);
      if (!one.empty()) regex += (regex.empty() ? "" : "|") + one;
    }
    if (regex.empty() || pattern.size() > kMaxPattern) {
      return Fail(ErrorCode::kInvalidArgument,
                  "it is for no file; write *.py for names, or src/**/*.py for paths below the directory searched");
    }
    RE2::Options options(RE2::Latin1);
    options.set_dot_nl(true);
    options.set_log_errors(false);
    options.set_max_mem(kGlobMemory);
    auto compiled = std::make_unique<RE2>(regex, options);
    if (!compiled->ok()) return Fail(ErrorCode::kInvalidArgument, "it is too long or not well-formed");
    return compiled;
  }

  static ToolOutcome Outcome(First& first, bool complete, const ToolContext& context) {
    std::string text;
    const std::vector<FoundFile>& files = first.Taken();
    for (const FoundFile& file : files) text += OneLine(file.path) + "\n";
    if (files.empty()) text = "(no file matches)\n";
    if (files.size() < first.count()) {
      text += "(cut: the first " + std::to_string(files.size()) + " of " + std::to_string(first.count()) +
              " files; narrow the pattern or the path)\n";
    }
    const bool cancelled = context.stop.stop_requested();
    if (cancelled) text += "(incomplete: cancelled)\n";
    if (!complete && !cancelled) text += "(incomplete: there are too many files; give a path)\n";
    text.pop_back();
    return {.output = std::move(text), .is_error = cancelled};
  }

  const Workspace& workspace_;
  const IgnoreFiles ignored_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeFindFilesTool(const Workspace& workspace) {
  return std::make_unique<FindFilesTool>(workspace);
}

}  // namespace reprise
