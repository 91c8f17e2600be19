#include "tools/read_tools.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/utf8.h"
#include "tools/arguments.h"
#include "tools/directory_listing.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxShownEntries = 1000;
constexpr std::size_t kMaxSortedEntries = 100'000;
constexpr std::size_t kMaxShownBytes = 256 * 1024;

class ListFilesTool final : public BuiltinTool {
 public:
  explicit ListFilesTool(const Workspace& workspace)
      : BuiltinTool({.spec = {.name = "list_files",
                              .description = "Lists the files and directories in a directory of the workspace, sorted, "
                                             "one per line; names of directories end with a slash. Not recursive.",
                              .parameters = R"({"type":"object","additionalProperties":false,
"properties":{"path":{"type":"string","maxLength":4096,
"description":"Directory, relative to the workspace. Default: the workspace itself."}}})"},
                     .approval_reason = "lists files of the workspace"}),
        workspace_(workspace) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext&) override {
    std::string path = Arguments(arguments).String("path").value_or(".");
    if (path.empty()) path = ".";
    const auto directory = workspace_.OpenDirectory(path);
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

// Picks lines `first` to `first + count - 1` out of a stream of chunks, up to kMaxShownBytes.
class LinePicker {
 public:
  LinePicker(std::uint64_t first, std::uint64_t count) : first_(first), count_(count) {}

  // False: has all it can use.
  bool Add(std::string_view chunk) {
    while (!chunk.empty()) {
      if (line_ - first_ >= count_ && line_ >= first_) return Stop();
      const std::size_t newline = chunk.find('\n');
      const std::string_view piece = chunk.substr(0, newline == std::string_view::npos ? chunk.size() : newline + 1);
      if (line_ >= first_ && !Keep(piece)) return Stop();
      in_line_ = newline == std::string_view::npos;
      if (!in_line_) ++line_;
      chunk.remove_prefix(piece.size());
    }
    return true;
  }

  const std::string& text() const { return text_; }
  bool stopped() const { return stopped_; }
  // The line that was not shown, or not wholly.
  std::uint64_t next_line() const { return line_; }
  bool cut_in_line() const { return cut_in_line_; }
  // Meaningful when the whole file was seen.
  std::uint64_t lines() const { return line_ - 1 + (in_line_ ? 1 : 0); }

 private:
  bool Keep(std::string_view piece) {
    if (text_.size() + piece.size() <= kMaxShownBytes) {
      text_ += piece;
      return true;
    }
    // Whole lines, unless not even one fits.
    const std::size_t line_start = text_.rfind('\n') == std::string::npos ? 0 : text_.rfind('\n') + 1;
    if (line_start > 0) {
      text_.resize(line_start);
    } else {
      text_ += piece.substr(0, kMaxShownBytes - text_.size());
      cut_in_line_ = true;
    }
    return false;
  }

  bool Stop() {
    stopped_ = true;
    return false;
  }

  const std::uint64_t first_, count_;
  std::string text_;
  std::uint64_t line_ = 1;  // the number of the line the next byte belongs to
  bool in_line_ = false;
  bool stopped_ = false;
  bool cut_in_line_ = false;
};

class ReadFileTool final : public BuiltinTool {
 public:
  explicit ReadFileTool(const Workspace& workspace)
      : BuiltinTool({.spec = {.name = "read_file",
                              .description = "Returns the content of a text file in the workspace, at most 256 KiB at "
                                             "a time; says so when there is more.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["path"],
"properties":{"path":{"type":"string","minLength":1,"maxLength":4096,"description":"File, relative to the workspace."},
"offset":{"type":"integer","minimum":1,"maximum":1000000000,"description":"Number of the first line to return, counted from 1. Default: 1."},
"limit":{"type":"integer","minimum":1,"maximum":1000000000,"description":"How many lines to return at most. Default: all."}}})"},
                     .approval_reason = "reads a file of the workspace"}),
        workspace_(workspace) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string path = given.String("path").value_or("");
    const auto outcome = Read(path, static_cast<std::uint64_t>(given.Integer("offset").value_or(1)),
                              static_cast<std::uint64_t>(given.Integer("limit").value_or(1'000'000'000)), context);
    if (!outcome) return ToolFailure("cannot read " + QuotedPath(path) + ": " + outcome.error().message);
    return {.output = *outcome};
  }

 private:
  Result<std::string> Read(const std::string& path, std::uint64_t offset, std::uint64_t limit,
                           const ToolContext& context) const {
    const auto file = workspace_.OpenFile(path);
    if (!file) return Fail(file.error());
    LinePicker lines(offset, limit);
    std::string chunk(64 * 1024, '\0');
    const auto deadline = std::chrono::steady_clock::now() + context.timeout;
    for (bool first = true;; first = false) {
      if (context.stop.stop_requested()) return Fail(ErrorCode::kCancelled, "cancelled");
      if (std::chrono::steady_clock::now() > deadline) {
        return Fail(ErrorCode::kDeadlineExceeded, "it took longer than allowed");
      }
      const ssize_t got = ::read(file->get(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Fail(WorkspaceError(errno));
      const std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
      if (first && !LooksLikeText(bytes)) return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
      if (got == 0 || !lines.Add(bytes)) break;
    }
    return Shown(lines, offset);
  }

  static Result<std::string> Shown(const LinePicker& lines, std::uint64_t offset) {
    if (!lines.stopped() && lines.lines() == 0) return std::string("(the file is empty)");
    if (!lines.stopped() && offset > lines.lines()) {
      return Fail(ErrorCode::kInvalidArgument, "it has only " + std::to_string(lines.lines()) + " lines");
    }
    std::string text = ToValidUtf8(lines.text());
    if (!lines.stopped()) return text;
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (lines.cut_in_line()) {
      return text + "(cut: line " + std::to_string(lines.next_line()) + " is longer than can be shown)";
    }
    return text + "(cut: lines " + std::to_string(offset) + " to " + std::to_string(lines.next_line() - 1) +
           "; go on with offset " + std::to_string(lines.next_line()) + ")";
  }

  const Workspace& workspace_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeListFilesTool(const Workspace& workspace) {
  return std::make_unique<ListFilesTool>(workspace);
}
std::unique_ptr<BuiltinTool> MakeReadFileTool(const Workspace& workspace) {
  return std::make_unique<ReadFileTool>(workspace);
}

}  // namespace reprise
