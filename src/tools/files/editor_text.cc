#include "tools/files/editor_text.h"

#include <utility>

#include "base/try.h"
#include "tools/text_file.h"

namespace reprise {
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
  // By the rules of a change: what may not be changed on the disk is not changed in the editor either.
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

}  // namespace reprise
