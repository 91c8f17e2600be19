#include <string>

#include "base/try.h"
#include "base/utf8.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/files/path_tool.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxEditedBytes = 8 * 1024 * 1024;
constexpr std::size_t kMaxPreviewedBytes = 1024 * 1024;  // of the file before and after the change

ToolTraits ChangingTraits(ToolSpec spec, bool idempotent, Risk risk, std::string reason, const Workspace& workspace) {
  return {.spec = std::move(spec),
          .read_only = false,
          .idempotent = idempotent,
          .requires_approval = true,
          .risk = risk,
          .approval_reason = std::move(reason),
          .terms = workspace.directory(),
          .file_effect = FileEffect::kOneFile};
}

// The current content of the file that a call would change; the tool fills in the rest. Secrets stay closed because the
// call is not approved yet.
Result<FileChange> FileAsItIs(const Workspace& workspace, const std::string& path) {
  if (workspace.LeadsToSecret(path)) {
    return Fail(NoChangeToShow(
        "it is where you keep secrets (keys, logins, histories): it is not opened before you have agreed to the call"));
  }
  auto place = workspace.PathInWorkspace(path);
  if (!place) return Fail(NoChangeToShow(place.error().message));
  auto content = workspace.ReadForChange(path, kMaxPreviewedBytes);
  if (!content) return Fail(NoChangeToShow(content.error().message));
  if (*content && !(LooksLikeText(**content) && IsUtf8(**content))) {
    return Fail(NoChangeToShow("the file is not UTF-8 text"));
  }
  return FileChange{.path = *std::move(place), .before = *std::move(content), .after = std::nullopt};
}

// The same for a call that needs an existing file.
Result<FileChange> ExistingFile(const Workspace& workspace, const std::string& path) {
  auto change = FileAsItIs(workspace, path);
  if (change && !change->before) return Fail(NoChangeToShow("the call would fail: there is no such file"));
  return change;
}

Result<FileChange> WithAfter(FileChange change, std::string after) {
  if (after.size() > kMaxPreviewedBytes) {
    return Fail(NoChangeToShow("the file would be larger than " + std::to_string(kMaxPreviewedBytes / 1024) + " KiB"));
  }
  change.after = std::move(after);
  return change;
}

class WriteFileTool final : public PathTool {
 public:
  explicit WriteFileTool(Workspace& workspace)
      : PathTool(ChangingTraits(
                     {.name = "write_file",
                      .description =
                          "Writes a text file in the workspace: replaces its whole content, or creates it together "
                          "with the directories above it.",
                      .parameters = R"({"type":"object","additionalProperties":false,"required":["path","content"],
"properties":{"path":{"type":"string","minLength":1,"maxLength":4096,"description":"File, relative to the workspace."},
"content":{"type":"string","description":"The whole new content."}}})"},
                     /*idempotent=*/true, Risk::kMedium, "writes a file in the workspace", workspace),
                 workspace),
        workspace_(workspace) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskToChange(workspace_, arguments);
  }

  std::optional<std::string> FailureOf(std::string_view arguments, const ToolContext& /*context*/) const override {
    const std::string path = Arguments(arguments).String("path").value_or("");
    if (workspace_.LeadsToSecret(path)) return std::nullopt;  // do not even reveal whether it exists
    const auto possible = workspace_.CheckChange(path, /*must_exist=*/false);
    if (possible) return std::nullopt;
    return "cannot write " + QuotedPath(path) + ": " + possible.error().message;
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string path = given.String("path").value_or("");
    const std::string content = given.String("content").value_or("");
    if (context.stop.stop_requested()) return ToolFailure("cancelled");
    if (UnsavedText(workspace_, path, context)) {
      const auto changed = ChangeInEditor(workspace_, path, content, context);
      if (!changed) return ToolFailure("cannot write " + QuotedPath(path) + ": " + changed.error().message);
      return {.output = "replaced " + QuotedPath(path) + " (" + std::to_string(content.size()) + " bytes)" + *changed};
    }
    const auto created = workspace_.WriteFile(path, content, OpenIfAsked(context));
    if (!created) return ToolFailure("cannot write " + QuotedPath(path) + ": " + created.error().message);
    return {.output = (*created ? "created " : "replaced ") + QuotedPath(path) + " (" + std::to_string(content.size()) +
                      " bytes)"};
  }

  Result<FileChange> PreviewChange(std::string_view arguments) const override {
    const Arguments given(arguments);
    auto change = TRY(FileAsItIs(workspace_, given.String("path").value_or("")));
    return WithAfter(std::move(change), given.String("content").value_or(""));
  }

 private:
  Workspace& workspace_;
};

std::size_t Occurrences(std::string_view text, std::string_view wanted) {
  std::size_t count = 0;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) ++count;
  return count;
}

class EditFileTool final : public PathTool {
 public:
  explicit EditFileTool(Workspace& workspace)
      : PathTool(ChangingTraits(
                     {.name = "edit_file",
                      .description =
                          "Replaces a piece of text in a file of the workspace. The old text must occur exactly once, "
                          "character by character; give more of its surroundings if it is not unique.",
                      .parameters =
                          R"({"type":"object","additionalProperties":false,"required":["path","old_text","new_text"],
"properties":{"path":{"type":"string","minLength":1,"maxLength":4096,"description":"File, relative to the workspace."},
"old_text":{"type":"string","minLength":1,"description":"The text to replace, exactly as it stands in the file."},
"new_text":{"type":"string","description":"What to put in its place; may be empty."}}})"},
                     /*idempotent=*/false, Risk::kMedium, "changes a file in the workspace", workspace),
                 workspace),
        workspace_(workspace) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskToChange(workspace_, arguments);
  }

  std::optional<std::string> FailureOf(std::string_view arguments, const ToolContext& context) const override {
    const Arguments given(arguments);
    const std::string path = given.String("path").value_or("");
    if (workspace_.LeadsToSecret(path)) return std::nullopt;
    auto possible = workspace_.CheckChange(path, /*must_exist=*/true);
    if (possible) {
      auto unsaved = UnsavedText(workspace_, path, context);
      auto text = unsaved ? Result<std::string>(*std::move(unsaved)) : workspace_.ReadFile(path, kMaxEditedBytes);
      possible = std::move(text).and_then([&](std::string content) -> Result<void> {
        TRY(ReplaceOnce(std::move(content), given.String("old_text").value_or(""),
                        given.String("new_text").value_or("")));
        return {};
      });
    }
    if (possible) return std::nullopt;
    return "cannot edit " + QuotedPath(path) + ": " + possible.error().message;
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const Arguments given(arguments);
    const std::string path = given.String("path").value_or("");
    const std::string old_text = given.String("old_text").value_or("");
    const std::string new_text = given.String("new_text").value_or("");
    if (context.stop.stop_requested()) return ToolFailure("cancelled");
    if (auto unsaved = UnsavedText(workspace_, path, context)) {
      const auto told = ReplaceOnce(*std::move(unsaved), old_text, new_text).and_then([&](const std::string& content) {
        return ChangeInEditor(workspace_, path, content, context);
      });
      if (!told) return ToolFailure("cannot edit " + QuotedPath(path) + ": " + told.error().message);
      return {.output = "edited " + QuotedPath(path) + *told};
    }
    const auto changed = workspace_.ChangeFile(
        path, kMaxEditedBytes, [&](std::string content) { return ReplaceOnce(std::move(content), old_text, new_text); },
        OpenIfAsked(context));
    if (!changed) return ToolFailure("cannot edit " + QuotedPath(path) + ": " + changed.error().message);
    return {.output = "edited " + QuotedPath(path)};
  }

  Result<FileChange> PreviewChange(std::string_view arguments) const override {
    const Arguments given(arguments);
    auto change = TRY(ExistingFile(workspace_, given.String("path").value_or("")));
    auto edited =
        ReplaceOnce(*change.before, given.String("old_text").value_or(""), given.String("new_text").value_or(""));
    if (!edited) return Fail(NoChangeToShow("the call would fail: " + edited.error().message));
    return WithAfter(std::move(change), *std::move(edited));
  }

 private:
  static Result<std::string> ReplaceOnce(std::string content, const std::string& old_text,
                                         const std::string& new_text) {
    if (!LooksLikeText(content)) return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
    if (old_text.empty()) return Fail(ErrorCode::kInvalidArgument, "old_text is empty");
    const std::size_t count = Occurrences(content, old_text);
    if (count != 1) {
      return Fail(ErrorCode::kInvalidArgument,
                  "old_text occurs " + std::to_string(count) + " times in the file; it must occur exactly once");
    }
    return content.replace(content.find(old_text), old_text.size(), new_text);
  }

  Workspace& workspace_;
};

class DeleteFileTool final : public PathTool {
 public:
  explicit DeleteFileTool(Workspace& workspace)
      : PathTool(ChangingTraits({.name = "delete_file",
                                 .description = "Deletes a file of the workspace. Cannot delete directories.",
                                 .parameters = R"({"type":"object","additionalProperties":false,"required":["path"],
"properties":{"path":{"type":"string","minLength":1,"maxLength":4096,"description":"File, relative to the workspace."}}})"},
                                /*idempotent=*/false, Risk::kHigh, "deletes a file in the workspace", workspace),
                 workspace),
        workspace_(workspace) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskToChange(workspace_, arguments);
  }

  std::optional<std::string> FailureOf(std::string_view arguments, const ToolContext& /*context*/) const override {
    const std::string path = Arguments(arguments).String("path").value_or("");
    if (workspace_.LeadsToSecret(path)) return std::nullopt;
    auto possible = workspace_.PathInWorkspace(path).and_then(
        [&](const std::string&) { return workspace_.CheckChange(path, /*must_exist=*/true); });
    // Links and read-only files can still be deleted.
    if (possible || possible.error().code == ErrorCode::kForbidden) return std::nullopt;
    return "cannot delete " + QuotedPath(path) + ": " + possible.error().message;
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const std::string path = Arguments(arguments).String("path").value_or("");
    if (context.stop.stop_requested()) return ToolFailure("cancelled");
    const auto deleted = workspace_.DeleteFile(path, OpenIfAsked(context));
    if (!deleted) return ToolFailure("cannot delete " + QuotedPath(path) + ": " + deleted.error().message);
    return {.output = "deleted " + QuotedPath(path)};
  }

  Result<FileChange> PreviewChange(std::string_view arguments) const override {
    return ExistingFile(workspace_, Arguments(arguments).String("path").value_or(""));
  }

 private:
  Workspace& workspace_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeWriteFileTool(Workspace& workspace) {
  return std::make_unique<WriteFileTool>(workspace);
}
std::unique_ptr<BuiltinTool> MakeEditFileTool(Workspace& workspace) {
  return std::make_unique<EditFileTool>(workspace);
}
std::unique_ptr<BuiltinTool> MakeDeleteFileTool(Workspace& workspace) {
  return std::make_unique<DeleteFileTool>(workspace);
}

}  // namespace reprise
