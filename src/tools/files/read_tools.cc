#include "tools/files/read_tools.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/try.h"
#include "domain/file_kind.h"
#include "tools/arguments.h"
#include "tools/files/directory_listing.h"
#include "tools/files/editor_text.h"
#include "tools/files/path_tool.h"
#include "tools/line_picker.h"
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
"properties":{"path":{"type":"string","minLength":1,"maxLength":4096,"description":"File, relative to the workspace."},
"offset":{"type":"integer","minimum":1,"maximum":1000000000,"description":"Number of the first line to return, counted from 1. Default: 1."},
"limit":{"type":"integer","minimum":1,"maximum":1000000000,"description":"How many lines to return at most. Default: all."}}})"},
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
                        static_cast<std::uint64_t>(given.Integer("limit").value_or(1'000'000'000)), context);
    if (!outcome) return ToolFailure("cannot read " + QuotedPath(path) + ": " + outcome.error().message);
    return *std::move(outcome);
  }

 private:
  Result<UniqueFd> Open(const std::string& path, const ToolContext& context) const {
    auto file = workspace_.OpenFile(path, OpenIfAsked(context));
    if (file || !elsewhere_ || !path.starts_with('/') || !workspace_.PlacesOf(path).empty()) return file;
    return elsewhere_(path);
  }

  Result<ToolOutcome> Read(const std::string& path, std::uint64_t offset, std::uint64_t limit,
                           const ToolContext& context) const {
    const auto file = TRY(Open(path, context));
    LinePicker lines(offset, limit);
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
        Whole what = TRY(ReadWhole(path, file.get(), std::string(bytes), context));
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

  // What is not text, read as a whole: an image, or the text of a document.
  struct Whole {
    std::optional<ToolOutcome> image{};
    std::shared_ptr<const std::string> text{};
  };
  static Result<Whole> ReadWhole(const std::string& path, int fd, std::string begin, const ToolContext& context) {
    static constexpr std::size_t kMostBytes = 16u << 20;
    std::string content = std::move(begin);
    std::string chunk(64 * 1024, '\0');
    while (content.size() <= kMostBytes) {
      const ssize_t got = ::read(fd, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Fail(WorkspaceError(errno));
      if (got == 0) break;
      content.append(chunk, 0, static_cast<std::size_t>(got));
    }
    if (content.size() > kMostBytes)
      return Fail(ErrorCode::kInvalidArgument, "it is a binary file, too large to look at");
    const std::string name = path.substr(path.find_last_of('/') + 1);
    FileNature nature = NatureOf(name, "", content);
    if (!nature.problem.empty()) return Fail(ErrorCode::kInvalidArgument, "it is an image, but " + nature.problem);
    if (nature.kind == FileKind::kImage) {
      ToolOutcome image{.output = "the image " + QuotedPath(path) + ", " + nature.mime_type};
      image.files.push_back({.mime_type = nature.mime_type, .filename = name, .content = std::move(content)});
      return Whole{.image = std::move(image)};
    }
    if (!IsDocument(nature.kind) || context.documents == nullptr) {
      return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
    }
    const auto document = TRY(MakeFile(name, nature.mime_type, std::move(content)));
    return Whole{.text = TRY(context.documents->Read(document, context.stop))};
  }

  const Workspace& workspace_;
  const Elsewhere elsewhere_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeListFilesTool(const Workspace& workspace) {
  return std::make_unique<ListFilesTool>(workspace);
}
std::unique_ptr<BuiltinTool> MakeReadFileTool(const Workspace& workspace, Elsewhere elsewhere) {
  return std::make_unique<ReadFileTool>(workspace, std::move(elsewhere));
}

}  // namespace reprise
