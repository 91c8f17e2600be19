#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "base/text_edits.h"
#include "base/try.h"
#include "domain/file_kind.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/files/patch.h"
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

// What else becomes of a file whose content is replaced by that of a new one.
std::string NoteOfLinks(const Workspace& workspace, const std::string& path, Secrets secrets) {
  const auto file = workspace.OpenFile(path, secrets);
  struct stat status {};
  if (!file || ::fstat(file->get(), &status) != 0 || status.st_nlink < 2) return {};
  return "\n(the file had other names, hard links, which keep the old content: " + QuotedPath(path) +
         " is a file of its own now)";
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
      return {.output = "replaced " + QuotedPath(path) + " (" + CountOf(content.size(), "byte") + ")" + *changed};
    }
    const std::string note = NoteOfLinks(workspace_, path, OpenIfAsked(context));
    const auto created = workspace_.WriteFile(path, content, OpenIfAsked(context));
    if (!created) return ToolFailure("cannot write " + QuotedPath(path) + ": " + created.error().message);
    return {.output = (*created ? "created " : "replaced ") + QuotedPath(path) + " (" +
                      CountOf(content.size(), "byte") + ")" + note};
  }

  Result<FileChange> PreviewChange(std::string_view arguments) const override {
    const Arguments given(arguments);
    auto change = TRY(FileAsItIs(workspace_, given.String("path").value_or("")));
    return WithAfter(std::move(change), given.String("content").value_or(""));
  }

 private:
  Workspace& workspace_;
};

// Fails for a file whose content cannot be edited as text.
Result<void> CheckEditable(std::string_view content) {
  if (LooksLikeText(content)) return {};
  if (NatureOf({}, {}, content).kind != FileKind::kEncodedText)
    return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
  return Fail(ErrorCode::kInvalidArgument,
              "it is text in UTF-16, and only UTF-8 can be edited: convert it, or replace the whole file");
}

// Why an edit of this content failed, with what else the model has to know.
Error WithEncoding(Error error, std::string_view content) {
  if (IsUtf8(content)) return error;
  error.message +=
      "\n(The file is not UTF-8. What is shown of it as U+FFFD are other bytes, which no edit can name: take lines "
      "without them.)";
  return error;
}

// The edits of a call, applied to the text of its file.
Result<EditedText> Edited(std::string_view arguments, std::string text, Quoting quoting) {
  TRY(CheckEditable(text));
  const auto given = TRY(ParseJson(arguments));
  const auto edits = TRY(EditsIn(given));
  return ApplyEdits(text, edits, quoting).map_error([&](Error error) { return WithEncoding(std::move(error), text); });
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
      const std::string note = NoteOfLinks(workspace_, path, OpenIfAsked(context));
      const auto changed = workspace_.ChangeFile(path, kMaxEditedBytes, edit, OpenIfAsked(context));
      if (!changed) return ToolFailure("cannot edit " + QuotedPath(path) + ": " + changed.error().message);
      output += note;
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

constexpr std::size_t kMaxFileBytes = 8 * 1024 * 1024;
constexpr std::size_t kMaxFiles = 100;
constexpr std::size_t kMaxPatchPreview = 1024 * 1024;  // of all files, before and after

// What a patch would do to the files as they are.
struct Plan {
  std::vector<Workspace::Change> changes;  // by path
  std::vector<std::string> told;           // for the model: a line for each file
};

class Planner {
 public:
  Planner(const Workspace& workspace, Secrets secrets, Quoting quoting)
      : workspace_(workspace), secrets_(secrets), quoting_(quoting) {}

  Result<Plan> Make(std::string_view arguments) {
    const auto files = TRY(ParsePatch(Arguments(arguments).String("input").value_or("")));
    if (files.size() > kMaxFiles) return Fail(ErrorCode::kInvalidArgument, "it changes more than 100 files");
    for (const FilePatch& file : files) {
      if (auto made = Apply(file); !made) {
        Error error = std::move(made.error());
        error.message = QuotedPath(file.path) + ": " + error.message;
        return Fail(std::move(error));
      }
    }
    for (auto& [path, change] : changes_) {
      if (change.before != change.after) plan_.changes.push_back(std::move(change));
    }
    if (plan_.changes.empty()) return Fail(ErrorCode::kInvalidArgument, "it would change nothing");
    return std::move(plan_);
  }

 private:
  Result<void> Apply(const FilePatch& file) {
    Workspace::Change* const change = TRY(At(file.path));
    if (file.kind == FilePatch::Kind::kAdd) {
      if (change->after) return Fail(ErrorCode::kInvalidArgument, "it is there already; use *** Update File");
      change->after = file.content;
      plan_.told.push_back("created " + QuotedPath(file.path));
      return {};
    }
    if (!change->after) return Fail(ErrorCode::kNotFound, "there is no such file");
    if (file.kind == FilePatch::Kind::kDelete) {
      change->after.reset();
      plan_.told.push_back("deleted " + QuotedPath(file.path));
      return {};
    }
    TRY(CheckEditable(*change->after));
    auto applied = ApplyHunks(*change->after, file.hunks, quoting_);
    if (!applied) return Fail(WithEncoding(std::move(applied.error()), *change->after));
    EditedText edited = *std::move(applied);
    std::string told = "edited " + QuotedPath(file.path);
    if (file.new_path.empty() || file.new_path == file.path) {
      change->after = std::move(edited.text);
    } else {
      Workspace::Change* const moved = TRY(At(file.new_path));
      if (moved->after) {
        return Fail(ErrorCode::kInvalidArgument, "it cannot move to " + QuotedPath(file.new_path) + ", which is there");
      }
      told = "moved " + QuotedPath(file.path) + " to " + QuotedPath(file.new_path);
      moved->after = std::move(edited.text);
      // The way may have several steps; only its beginning is a file by now.
      moved->moved_from = change->moved_from.empty() ? change->path : change->moved_from;
      change->after.reset();
      change->moved_from.clear();
    }
    for (const std::string& note : edited.notes) told += "\n(" + note + ")";
    plan_.told.push_back(std::move(told));
    return {};
  }

  // The file as the patch has left it so far. The pointer stays valid.
  Result<Workspace::Change*> At(const std::string& path) {
    const std::string place = TRY(workspace_.PathInWorkspace(path));
    const auto known = changes_.find(place);
    if (known != changes_.end()) return &known->second;
    TRY(workspace_.CheckChange(path, /*must_exist=*/false));
    auto content = TRY(workspace_.ReadForChange(path, kMaxFileBytes, secrets_));
    return &changes_.emplace(place, Workspace::Change{place, content, content}).first->second;
  }

  const Workspace& workspace_;
  const Secrets secrets_;
  const Quoting quoting_;
  std::map<std::string, Workspace::Change> changes_;
  Plan plan_;
};

class ApplyPatchTool final : public PathTool {
 public:
  ApplyPatchTool(Workspace& workspace, Quoting quoting)
      : PathTool(
            {.spec = {.name = "apply_patch",
                      .description =
                          "Adds, updates, moves and deletes files of the workspace by a patch, of which all is "
                          "done or nothing. Its lines: *** Begin Patch; for each file *** Add File: PATH with + in "
                          "front of each line, *** Delete File: PATH, or *** Update File: PATH, perhaps *** Move "
                          "to: PATH, and hunks of lines that begin with a blank (context), - or +, each after @@ "
                          "and a line above it; *** End Patch. A hunk must fit in one place only: give three "
                          "lines of context above and below.",
                      .parameters = R"({"type":"object","additionalProperties":false,"required":["input"],
"properties":{"input":{"type":"string","minLength":1,"description":"The patch; paths are relative to the workspace."}}})"},
             .read_only = false,
             .idempotent = false,
             .requires_approval = true,
             .risk = Risk::kMedium,
             .approval_reason = "changes files in the workspace",
             .confined = true,
             .terms = workspace.directory(),
             .file_effect = FileEffect::kPatchedFiles,
             .acts_as = {"edit_file", "write_file", "delete_file"}},
            workspace),
        workspace_(workspace),
        quoting_(quoting) {}

  std::optional<std::string> ReasonToAsk(std::string_view arguments) const override {
    for (const std::string& path : PathsInPatch(arguments)) {
      if (auto why = ReasonToAskToChangePath(workspace_, path)) return QuotedPath(path) + ": " + *why;
    }
    return std::nullopt;
  }

  std::optional<std::string> FailureOf(std::string_view arguments, const ToolContext& context) const override {
    if (LeadsToSecret(arguments)) return std::nullopt;
    const auto plan = Planner(workspace_, Secrets::kClosed, quoting_).Make(arguments);
    if (!plan) return Failed(plan.error());
    return UnsavedFile(*plan, context);
  }

  ToolOutcome Run(std::string_view arguments, const ToolContext& context) override {
    if (context.stop.stop_requested()) return ToolFailure("cancelled");
    const auto plan = Planner(workspace_, OpenIfAsked(context), quoting_).Make(arguments);
    if (!plan) return ToolFailure(Failed(plan.error()));
    if (auto unsaved = UnsavedFile(*plan, context)) return ToolFailure(*std::move(unsaved));
    std::string notes;
    for (const Workspace::Change& change : plan->changes) {
      if (change.before && change.after) notes += NoteOfLinks(workspace_, change.path, OpenIfAsked(context));
    }
    if (const auto done = workspace_.ChangeFiles(plan->changes, OpenIfAsked(context)); !done) {
      return ToolFailure(Failed(done.error()));
    }
    std::string output;
    for (const std::string& told : plan->told) output += (output.empty() ? "" : "\n") + told;
    return {.output = output + notes};
  }

  Result<FileChange> PreviewChange(std::string_view arguments) const override {
    if (LeadsToSecret(arguments)) {
      return Fail(
          NoChangeToShow("it changes files where you keep secrets (keys, logins, histories): they are not opened "
                         "before you have agreed to the call"));
    }
    auto plan = Planner(workspace_, Secrets::kClosed, Quoting::kForbidden).Make(arguments);
    if (!plan) return Fail(NoChangeToShow("the call would fail: " + plan.error().message));
    FileChange shown;
    std::size_t bytes = 0;
    for (Workspace::Change& change : plan->changes) {
      for (const auto* text : {&change.before, &change.after}) {
        bytes += *text ? (*text)->size() : 0;
        if (*text && !IsUtf8(**text)) return Fail(NoChangeToShow(QuotedPath(change.path) + " is not UTF-8 text"));
      }
      FileChange each{std::move(change.path), std::move(change.before), std::move(change.after)};
      if (shown.path.empty()) {
        shown = std::move(each);
      } else {
        shown.more.push_back(std::move(each));
      }
    }
    if (bytes > 2 * kMaxPatchPreview) return Fail(NoChangeToShow("the files are larger than 2 MiB together"));
    return shown;
  }

 protected:
  std::vector<std::string> PathsOf(std::string_view arguments, std::string_view /*otherwise*/) const override {
    return PathsInPatch(arguments);
  }

 private:
  static std::string Failed(const Error& error) {
    return "cannot apply the patch, so nothing was changed: " + error.message;
  }
  bool LeadsToSecret(std::string_view arguments) const {
    const auto paths = PathsInPatch(arguments);
    return std::ranges::any_of(paths, [&](const auto& path) { return workspace_.LeadsToSecret(path); });
  }
  // An editor that has unsaved changes must make the change itself, which only edit_file and write_file ask it to.
  std::optional<std::string> UnsavedFile(const Plan& plan, const ToolContext& context) const {
    for (const Workspace::Change& change : plan.changes) {
      if (!UnsavedText(workspace_, change.path, context)) continue;
      return "cannot apply the patch, so nothing was changed: " + QuotedPath(change.path) +
             " is open in an editor with changes that are not saved; use edit_file for it, or ask the user to save it";
    }
    return std::nullopt;
  }

  Workspace& workspace_;
  const Quoting quoting_;
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
std::unique_ptr<BuiltinTool> MakeApplyPatchTool(Workspace& workspace, Quoting quoting) {
  return std::make_unique<ApplyPatchTool>(workspace, quoting);
}

}  // namespace reprise
