#include "tools/files/search_tool.h"

#include <re2/re2.h>
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tools/arguments.h"
#include "tools/files/directory_listing.h"
#include "tools/files/path_tool.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxMatches = 200;
constexpr std::size_t kMaxShownLine = 400;
constexpr std::size_t kMaxSearchedBytes = 16 * 1024 * 1024;
constexpr std::size_t kMaxEntries = 100'000;
constexpr int kMaxFolderDepth = 64;  // bounds the recursion and the open descriptors
constexpr std::int64_t kPatternMemory = 8 * 1024 * 1024;

// One search: what is found, and why it ended early if it did.
class Search {
 public:
  Search(const Workspace& workspace, const RE2& pattern, Secrets secrets, const ToolContext& context)
      : workspace_(workspace),
        pattern_(pattern),
        secrets_(secrets),
        stop_(context.stop),
        deadline_(std::chrono::steady_clock::now() + context.timeout) {}

  // What cannot be opened or read below the first level is passed over, as it is not what was asked for by name.
  void InFileOrDirectory(int fd, const std::string& shown_path, int depth = 0) {
    if (Ended()) return;
    struct stat status {};
    if (::fstat(fd, &status) != 0) return;
    if (S_ISDIR(status.st_mode)) {
      InDirectory(fd, shown_path, depth);
    } else if (static_cast<std::size_t>(status.st_size) > kMaxSearchedBytes) {
      ++too_large_;
    } else if (const auto content = ReadAll(fd, kMaxSearchedBytes, stop_); content && LooksLikeText(*content)) {
      InText(*content, shown_path);
    }
  }

  ToolOutcome Outcome() const {
    std::string text = matches_;
    if (matches_.empty()) text = "(no line matches)\n";
    if (count_ == kMaxMatches) text += "(cut: the first " + std::to_string(count_) + " matching lines)\n";
    if (too_large_ > 0) text += "(" + std::to_string(too_large_) + " files larger than 16 MiB were not searched)\n";
    if (closed_ > 0) {
      text += "(" + std::to_string(closed_) + " files or directories where the user keeps secrets were not searched)\n";
    }
    if (too_deep_)
      text += "(directories nested deeper than " + std::to_string(kMaxFolderDepth) + " were not searched)\n";
    if (timed_out_) text += "(incomplete: the search took longer than allowed)\n";
    if (stop_.stop_requested()) text += "(incomplete: cancelled)\n";
    text.pop_back();
    return {.output = std::move(text), .is_error = timed_out_ || stop_.stop_requested()};
  }

 private:
  void InDirectory(int directory, const std::string& shown_path, int depth) {
    if (depth == kMaxFolderDepth) {
      too_deep_ = true;
      return;
    }
    const auto listing = ReadDirectory(workspace_, directory, kMaxEntries);
    if (!listing) return;
    for (const ListedEntry& entry : listing->entries) {
      if (Ended()) return;
      if (entry.name == ".git") continue;
      const auto fd = workspace_.OpenEntry(directory, entry.name, secrets_);
      if (!fd && workspace_.IsSecret(directory, entry.name)) ++closed_;
      if (fd) InFileOrDirectory(fd->get(), shown_path.empty() ? entry.name : shown_path + "/" + entry.name, depth + 1);
    }
  }

  void InText(std::string_view text, const std::string& shown_path) {
    std::size_t number = 0;
    while (!text.empty() && !Ended()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern_)) continue;
      const bool cut = line.size() > kMaxShownLine;
      matches_ += OneLine(shown_path) + ":" + std::to_string(number) + ": " + OneLine(line.substr(0, kMaxShownLine)) +
                  (cut ? "...\n" : "\n");
      ++count_;
    }
  }

  bool Ended() {
    timed_out_ = timed_out_ || std::chrono::steady_clock::now() > deadline_;
    return timed_out_ || count_ == kMaxMatches || stop_.stop_requested();
  }

  const Workspace& workspace_;
  const RE2& pattern_;
  const Secrets secrets_;
  const std::stop_token stop_;
  const std::chrono::steady_clock::time_point deadline_;
  std::string matches_;
  std::size_t count_ = 0;
  std::size_t too_large_ = 0;
  std::size_t closed_ = 0;
  bool too_deep_ = false;
  bool timed_out_ = false;
};

class SearchFilesTool final : public PathTool {
 public:
  explicit SearchFilesTool(const Workspace& workspace)
      : PathTool(
            {.spec = {.name = "search_files",
                      .description = "Searches the text files of the workspace, line by line, and returns the matching "
                                     "lines as \"path:line: text\". Binary files and .git are passed over.",
                      .parameters = R"({"type":"object","additionalProperties":false,"required":["pattern"],
"properties":{"pattern":{"type":"string","minLength":1,"maxLength":1000,
"description":"Regular expression in RE2 syntax (no look-around, no back-references); case-sensitive, (?i) makes it ignore case. Put a backslash before . * + ? ( ) [ ] { } | ^ $ to mean the character itself."},
"path":{"type":"string","maxLength":4096,
"description":"Directory or file to search, relative to the workspace. Default: the whole workspace."}}})"},
             .approval_reason = "searches the files of the workspace",
             .terms = workspace.directory()},
            workspace, /*reaches_below=*/true),
        workspace_(workspace) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskFor(workspace_, arguments);
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kPatternMemory);
    const RE2 pattern(given.String("pattern").value_or(""), options);
    if (!pattern.ok()) {
      return ToolFailure("the pattern is not a regular expression that can be used: " + ToValidUtf8(pattern.error()));
    }
    std::string path = given.String("path").value_or(".");
    if (path.empty()) path = ".";
    // Who was asked about a search of everything was not asked about the secrets in it.
    const Secrets secrets = workspace_.LeadsToSecret(path) ? OpenIfAsked(context) : Secrets::kClosed;
    const auto start = workspace_.OpenAny(path, secrets);
    if (!start) return ToolFailure("cannot search " + QuotedPath(path) + ": " + start.error().message);
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    Search search(workspace_, pattern, secrets, context);
    search.InFileOrDirectory(start->get(), path == "." ? "" : path);
    return search.Outcome();
  }

 private:
  const Workspace& workspace_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeSearchFilesTool(const Workspace& workspace) {
  return std::make_unique<SearchFilesTool>(workspace);
}

}  // namespace reprise
