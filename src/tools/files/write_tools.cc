#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text_edits.h"
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
          .confined = true,
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

// The edits of a call, applied to the text of its file.
Result<EditedText> Edited(std::string_view arguments, std::string text, Quoting quoting) {
  if (!LooksLikeText(text)) return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
  const auto given = ParseJson(arguments);
  if (!given) return Fail(given.error());
  return ApplyEdits(std::move(text), TRY(EditsIn(*given)), quoting);
}

class EditFileTool final : public PathTool {
 public:
  EditFileTool(Workspace& workspace, Quoting quoting)
      : PathTool(ChangingTraits(
                     {.name = "edit_file",
                      .description =
                          "Replaces pieces of text in a file of the workspace: one (old_text, new_text), or several in "
                          "edits, of which all are made or none. Each old text must occur exactly once, character by "
                          "character; give more of its surroundings if it is not unique, or set replace_all.",
                      .parameters = R"({"type":"object","additionalProperties":false,"required":["path"],
"properties":{"path":{"type":"string","minLength":1,"maxLength":4096,"description":"File, relative to the workspace."},
"old_text":{"type":"string","minLength":1,"description":"The text to replace, exactly as it stands in the file."},
"new_text":{"type":"string","description":"What to put in its place; may be empty."},
"replace_all":{"type":"boolean","description":"Replace every occurrence. Default: false."},
"edits":{"type":"array","minItems":1,"maxItems":100,"description":"Instead of old_text and new_text: several edits of this file, made one after the other.",
"items":{"type":"object","additionalProperties":false,"required":["old_text","new_text"],
"properties":{"old_text":{"type":"string","minLength":1},"new_text":{"type":"string"},"replace_all":{"type":"boolean"}}}}}})"},
                     /*idempotent=*/false, Risk::kMedium, "changes a file in the workspace", workspace),
                 workspace),
        workspace_(workspace),
        quoting_(quoting) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    return ReasonToAskToChange(workspace_, arguments);
  }

  std::optional<std::string> FailureOf(std::string_view arguments, const ToolContext& context) const override {
    const std::string path = Arguments(arguments).String("path").value_or("");
    if (workspace_.LeadsToSecret(path)) return std::nullopt;
    auto possible = workspace_.CheckChange(path, /*must_exist=*/true);
    if (possible) {
      auto unsaved = UnsavedText(workspace_, path, context);
      auto text = unsaved ? Result<std::string>(*std::move(unsaved)) : workspace_.ReadFile(path, kMaxEditedBytes);
      possible = std::move(text).and_then([&](std::string content) -> Result<void> {
        TRY(Edited(arguments, std::move(content), quoting_));
        return {};
      });
    }
    if (possible) return std::nullopt;
    return "cannot edit " + QuotedPath(path) + ": " + possible.error().message;
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    const std::string path = Arguments(arguments).String("path").value_or("");
    if (context.stop.stop_requested()) return ToolFailure("cancelled");
    std::vector<std::string> notes;
    const auto edit = [&](std::string content) {
      return Edited(arguments, std::move(content), quoting_).map([&](EditedText edited) {
        notes = std::move(edited.notes);
        return std::move(edited.text);
      });
    };
    std::string output = "edited " + QuotedPath(path);
    if (auto unsaved = UnsavedText(workspace_, path, context)) {
      const auto told = edit(*std::move(unsaved)).and_then([&](const std::string& content) {
        return ChangeInEditor(workspace_, path, content, context);
      });
      if (!told) return ToolFailure("cannot edit " + QuotedPath(path) + ": " + told.error().message);
      output += *told;
    } else {
      const auto changed = workspace_.ChangeFile(path, kMaxEditedBytes, edit, OpenIfAsked(context));
      if (!changed) return ToolFailure("cannot edit " + QuotedPath(path) + ": " + changed.error().message);
    }
    for (const std::string& note : notes) output += "\n(" + note + ")";
    return {.output = std::move(output)};
  }

  Result<FileChange> PreviewChange(std::string_view arguments) const override {
    auto change = TRY(ExistingFile(workspace_, Arguments(arguments).String("path").value_or("")));
    auto edited = Edited(arguments, *change.before, Quoting::kForbidden);
    if (!edited) return Fail(NoChangeToShow("the call would fail: " + edited.error().message));
    return WithAfter(std::move(change), std::move(edited->text));
  }

 private:
  Workspace& workspace_;
  const Quoting quoting_;
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
std::unique_ptr<BuiltinTool> MakeEditFileTool(Workspace& workspace, Quoting quoting) {
  return std::make_unique<EditFileTool>(workspace, quoting);
}
std::unique_ptr<BuiltinTool> MakeDeleteFileTool(Workspace& workspace) {
  return std::make_unique<DeleteFileTool>(workspace);
}

}  // namespace reprise
