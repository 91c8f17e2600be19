#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "base/utf8.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/files/patch.h"
#include "tools/files/path_tool.h"
#include "tools/text_file.h"

namespace reprise {
namespace {

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
    if (!LooksLikeText(*change->after)) return Fail(ErrorCode::kInvalidArgument, "it is a binary file, not text");
    EditedText edited = TRY(ApplyHunks(*change->after, file.hunks, quoting_));
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
      change->after.reset();
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
    if (const auto done = workspace_.ChangeFiles(plan->changes, OpenIfAsked(context)); !done) {
      return ToolFailure(Failed(done.error()));
    }
    std::string output;
    for (const std::string& told : plan->told) output += (output.empty() ? "" : "\n") + told;
    return {.output = std::move(output)};
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

std::unique_ptr<BuiltinTool> MakeApplyPatchTool(Workspace& workspace, Quoting quoting) {
  return std::make_unique<ApplyPatchTool>(workspace, quoting);
}

}  // namespace reprise
