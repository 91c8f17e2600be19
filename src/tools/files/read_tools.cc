#include <fcntl.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "domain/file_kind.h"
#include "domain/kept_output.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/files/path_tool.h"
#include "tools/files/whole_file.h"
#include "tools/files/workspace_walk.h"
#include "tools/text_file.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxShownEntries = 1000;
constexpr std::size_t kMaxSortedEntries = 100'000;

class ListFilesTool final : public PathTool {
 public:
  explicit ListFilesTool(const Workspace& workspace)
      : PathTool({.spec = {.name = "list_files",
                           .description = "Lists the files and directories in a directory of the workspace, sorted, "
                                          "one per line; names of directories end with a slash. Not recursive.",
                           .parameters = R"({"type":"object","additionalProperties":false,
"properties":{"path":{"type":"string","maxLength":4096,
"description":"Directory, relative to the workspace. Default: the workspace itself."}}})"},
                  .approval_reason = "lists files of the workspace",
                  .terms = workspace.directory()},
                 workspace),
        workspace_(workspace) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskFor(workspace_, arguments);
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    std::string path = Arguments(arguments).String("path").value_or(".");
    if (path.empty()) path = ".";
    const auto directory = workspace_.OpenDirectory(path, OpenIfAsked(context));
    if (!directory) return ToolFailure("cannot list " + QuotedPath(path) + ": " + directory.error().message);
    const auto listing = ReadDirectory(workspace_, directory->get(), kMaxSortedEntries);
    if (!listing) return ToolFailure("cannot list " + QuotedPath(path) + ": " + listing.error().message);
    return {.output = Shown(*listing)};
  }

 private:
  static std::string Shown(const DirectoryListing& listing) {
    if (listing.entries.empty()) return "(the directory is empty)";
    std::string text;
    const std::size_t shown = std::min(listing.entries.size(), kMaxShownEntries);
    for (std::size_t i = 0; i < shown; ++i) {
      text += OneLine(listing.entries[i].name) + (listing.entries[i].is_directory ? "/\n" : "\n");
    }
    text.pop_back();
    if (shown == listing.entries.size()) return text;
    return text + "\n(cut: the first " + std::to_string(shown) + " of " + (listing.complete ? "" : "more than ") +
           std::to_string(listing.entries.size()) + " entries)";
  }

  const Workspace& workspace_;
};

// The file of the chat that a path means: its id, which no file of a workspace is likely to have as its name.
std::optional<FileId> ChatFileAt(const std::string& path, const ToolContext& context) {
  const auto id = context.files != nullptr ? FileId::Parse(path) : Fail(ErrorCode::kNotFound, "");
  return id ? std::optional(*id) : std::nullopt;
}

using Elsewhere = std::function<Result<UniqueFd>(const std::string& path)>;

class ReadFileTool final : public PathTool {
 public:
  ReadFileTool(const Workspace& workspace, Elsewhere elsewhere)
      : PathTool({.spec = {.name = "read_file",
                           .description = "Returns the content of a file in the workspace: of a text file or a "
                                          "document (PDF, docx, xlsx, pptx, odt) its text, at most 256 KiB at a "
                                          "time; says so when there is more. An image is shown to you, if you take "
                                          "images.",
                           .parameters = R"({"type":"object","additionalProperties":false,"required":["path"],
"properties":{"path":{"type":"string","minLength":1,"maxLength":4096,"description":"File, relative to the workspace; or the id of a text file of this chat (file_...), such as the whole of a long output."},
"offset":{"type":"integer","minimum":1,"maximum":1000000000,"description":"Number of the first line to return, counted from 1. Default: 1."},
"limit":{"type":"integer","minimum":1,"maximum":1000000000,"description":"How many lines to return at most. Default: all."},
"line_numbers":{"type":"boolean","description":"Begin each line with its number and a tab, which are not in the file. Default: false."}}})"},
                  .approval_reason = "reads a file of the workspace",
                  .terms = workspace.directory()},
                 workspace),
        workspace_(workspace),
        elsewhere_(std::move(elsewhere)) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskFor(workspace_, arguments);
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string path = given.String("path").value_or("");
    auto outcome = Read(path, static_cast<std::uint64_t>(given.Integer("offset").value_or(1)),
                        static_cast<std::uint64_t>(given.Integer("limit").value_or(1'000'000'000)),
                        given.Boolean("line_numbers").value_or(false), context);
    if (!outcome) return ToolFailure("cannot read " + QuotedPath(path) + ": " + outcome.error().message);
    return *std::move(outcome);
  }

 private:
  Result<UniqueFd> Open(const std::string& path, const ToolContext& context) const {
    auto file = workspace_.OpenFile(path, OpenIfAsked(context));
    if (file || !elsewhere_ || !path.starts_with('/') || !workspace_.PlacesOf(path).empty()) return file;
    return elsewhere_(path);
  }

  Result<ToolOutcome> Read(const std::string& path, std::uint64_t offset, std::uint64_t limit, bool numbered,
                           const ToolContext& context) const {
    LinePicker lines(offset, limit, numbered);
    if (const auto id = ChatFileAt(path, context)) {
      TRY(ReadChatText(*context.files, *id, [&](std::string_view piece) { return lines.Add(piece); }));
      return lines.Shown().map([](std::string text) { return ToolOutcome{.output = std::move(text)}; });
    }
    const auto file = TRY(Open(path, context));
    std::string chunk(64 * 1024, '\0');
    const auto deadline = std::chrono::steady_clock::now() + context.timeout;
    for (bool first = true;; first = false) {
      if (context.stop.stop_requested()) return Fail(ErrorCode::kCancelled, "cancelled");
      if (std::chrono::steady_clock::now() > deadline) {
        return Fail(ErrorCode::kDeadlineExceeded, "it took longer than allowed");
      }
      const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Fail(WorkspaceError(errno));
      const std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
      if (first && (!LooksLikeText(bytes) || bytes.starts_with("%PDF-"))) {
        WholeFile what = TRY(ReadWholeFile(path, file.get(), std::string(bytes), context));
        if (what.image) return *std::move(what.image);
        lines.Add(*what.text);
        break;
      }
      if (first) {
        if (const auto text = TextInEditor(workspace_, path, context)) {
          lines.Add(*text);
          break;
        }
      }
      if (got == 0 || !lines.Add(bytes)) break;
    }
    return lines.Shown().map([](std::string text) { return ToolOutcome{.output = std::move(text)}; });
  }

  const Workspace& workspace_;
  const Elsewhere elsewhere_;
};

constexpr std::size_t kMaxMatches = 200;
constexpr std::size_t kMaxShownLine = 400;
constexpr std::size_t kMaxSearchedBytes = 16 * 1024 * 1024;
constexpr std::size_t kMaxEntries = 100'000;
constexpr int kMaxFolderDepth = 64;  // bounds the recursion and the open descriptors
constexpr std::int64_t kPatternMemory = 8 * 1024 * 1024;

// Files or directories that were not searched for one reason.
struct Passed {
  std::string first;
  std::size_t count = 0;

  void Add(const std::string& path) {
    if (count++ == 0) first = path;
  }
};

// A search with its matches, and the reason if it ended early.
class Search {
 public:
  Search(const Workspace& workspace, const RE2& pattern, Secrets secrets, const ToolContext& context)
      : workspace_(workspace),
        pattern_(pattern),
        secrets_(secrets),
        stop_(context.stop),
        deadline_(std::chrono::steady_clock::now() + context.timeout) {}

  // Counts entries that cannot be searched, because the call did not name them.
  void InFileOrDirectory(int fd, const std::string& shown_path, int depth = 0) {
    if (Ended()) return;
    struct stat status {};
    if (::fstat(fd, &status) != 0) return;
    if (S_ISDIR(status.st_mode)) {
      InDirectory(fd, shown_path, depth);
    } else if (static_cast<std::size_t>(status.st_size) > kMaxSearchedBytes) {
      ++too_large_;
    } else if (const auto content = ReadAll(fd, kMaxSearchedBytes, stop_); !content) {
      if (IsUnreadable(content.error())) unread_.Add(shown_path);
    } else if (LooksLikeText(*content)) {
      InText(*content, shown_path);
    } else if (NatureOf({}, {}, *content).kind == FileKind::kEncodedText) {
      encoded_.Add(shown_path);
    }
  }

  // A file or directory that the call names. Of a document its text is searched, as read_file shows it.
  Result<void> InNamed(int fd, const std::string& path, const ToolContext& context) {
    struct stat status {};
    const bool is_file = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (!is_file || static_cast<std::size_t>(status.st_size) > kMaxSearchedBytes) {
      InFileOrDirectory(fd, path == "." ? "" : path);
      return {};
    }
    std::string content = TRY(ReadAll(fd, kMaxSearchedBytes, stop_));
    if (LooksLikeText(content) && !content.starts_with("%PDF-")) {
      InText(content, path);
      return {};
    }
    const WholeFile what = TRY(ReadWholeFile(path, fd, std::move(content), context));
    if (what.image) return Fail(ErrorCode::kInvalidArgument, "it is an image, not text");
    InText(*what.text, path);
    return {};
  }

  Result<void> InChatFile(FilesOfChat& files, const FileId& id) {
    std::size_t lines = 0;
    return ReadChatText(files, id, [&](std::string_view piece) {
      InText(piece, id.str(), lines);
      lines += static_cast<std::size_t>(std::ranges::count(piece, '\n'));
      return !Ended();
    });
  }

  ToolOutcome Outcome() const {
    std::string text = matches_;
    if (matches_.empty()) text = "(no line matches)\n";
    if (count_ == kMaxMatches) text += "(cut: the first " + std::to_string(count_) + " matching lines)\n";
    const auto were = [](std::size_t count) { return count == 1 ? " was" : " were"; };
    if (too_large_ > 0) {
      text += "(" + CountOf(too_large_, "file") + " larger than 16 MiB" + were(too_large_) + " not searched)\n";
    }
    if (closed_ > 0) {
      text += "(" +
              std::string(closed_ == 1 ? "1 file or directory" : std::to_string(closed_) + " files or directories") +
              " where the user keeps secrets" + were(closed_) + " not searched)\n";
    }
    const auto tell = [&text](const Passed& passed, const std::string& before, const std::string& after) {
      if (passed.count == 0) return;
      const std::string more = passed.count == 1 ? "" : " and " + std::to_string(passed.count - 1) + " more";
      text += "(" + before + QuotedPath(passed.first) + more + after + ")\n";
    };
    tell(unread_, "not searched, because they cannot be read: ", "");
    tell(encoded_, "not searched, because they are not UTF-8: ", "; give a file as path to search it");
    tell(large_folders_, "only the first " + std::to_string(kMaxEntries) + " entries were searched in ", "");
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
    if (!listing) return unread_.Add(shown_path);
    if (!listing->complete) large_folders_.Add(shown_path.empty() ? "." : shown_path);
    for (const ListedEntry& entry : listing->entries) {
      if (Ended()) return;
      if (entry.name == ".git") continue;
      const auto fd = workspace_.OpenEntry(directory, entry.name, secrets_);
      const std::string shown = shown_path.empty() ? entry.name : shown_path + "/" + entry.name;
      const bool is_closed = !fd && workspace_.IsSecret(directory, entry.name);
      if (is_closed) ++closed_;
      if (!fd && !is_closed && IsUnreadable(fd.error())) unread_.Add(shown);
      if (fd) InFileOrDirectory(fd->get(), shown, depth + 1);
    }
  }

  void InText(std::string_view text, const std::string& shown_path, std::size_t number = 0) {
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
  Passed unread_, encoded_, large_folders_;
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
"description":"Directory or file to search, relative to the workspace; or the id of a text file of this chat (file_...). Default: the whole workspace."}}})"},
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
    if (const auto id = ChatFileAt(path, context)) {
      Search search(workspace_, pattern, Secrets::kClosed, context);
      const auto read = search.InChatFile(*context.files, *id);
      if (!read) return ToolFailure("cannot search " + QuotedPath(path) + ": " + read.error().message);
      return search.Outcome();
    }
    // A person who agreed to a search of everything has not agreed to open the secrets in it.
    const Secrets secrets = workspace_.LeadsToSecret(path) ? OpenIfAsked(context) : Secrets::kClosed;
    const auto start = workspace_.OpenAny(path, secrets);
    if (!start) return ToolFailure("cannot search " + QuotedPath(path) + ": " + start.error().message);
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    Search search(workspace_, pattern, secrets, context);
    if (const auto searched = search.InNamed(start->get(), path, context); !searched) {
      return ToolFailure("cannot search " + QuotedPath(path) + ": " + searched.error().message);
    }
    return search.Outcome();
  }

 private:
  const Workspace& workspace_;
};

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
    return Outcome(first, walk, context);
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

  static ToolOutcome Outcome(First& first, const WorkspaceWalk& walk, const ToolContext& context) {
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
    if (walk.unread() > 0) {
      const char* const what = walk.unread() == 1 ? " directory" : " directories";
      text += "(incomplete: " + std::to_string(walk.unread()) + what + " cannot be read)\n";
    }
    if (!walk.complete() && !cancelled) text += "(incomplete: there are too many files; give a path)\n";
    text.pop_back();
    return {.output = std::move(text), .is_error = cancelled};
  }

  const Workspace& workspace_;
  const IgnoreFiles ignored_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeListFilesTool(const Workspace& workspace) {
  return std::make_unique<ListFilesTool>(workspace);
}
std::unique_ptr<BuiltinTool> MakeReadFileTool(const Workspace& workspace, Elsewhere elsewhere) {
  return std::make_unique<ReadFileTool>(workspace, std::move(elsewhere));
}
std::unique_ptr<BuiltinTool> MakeSearchFilesTool(const Workspace& workspace) {
  return std::make_unique<SearchFilesTool>(workspace);
}
std::unique_ptr<BuiltinTool> MakeFindFilesTool(const Workspace& workspace) {
  return std::make_unique<FindFilesTool>(workspace);
}

}  // namespace reprise
