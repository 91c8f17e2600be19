#include "engine/blamed_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/path.h"
#include "base/text.h"
#include "base/try.h"
#include "blame/blamed_lines.h"
#include "blame/file_changes.h"

namespace reprise {
namespace {

// Whether the chat works, or has begun to work, in a folder that holds the file.
bool HasWorkedAbove(const ChatSummary& chat, const std::string& file, EngineServices& services) {
  const std::string& home = services.home->path;
  if (LiesBeneath(file, FolderOf(chat.workspace, home))) return true;
  const auto first = services.parts.store.LoadInteraction(chat.id, InteractionId::FromNumber(1));
  return first && LiesBeneath(file, FolderOf(first->workspace, home));
}

}  // namespace

Result<BlamedFile> BlameFile(EngineServices& services, const WorkspaceParts& workspace, const std::string& path,
                             std::string text) {
  if (text.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument, path + " is a binary file, which has no lines");
  }
  const std::string file = Resolved(std::filesystem::path(workspace.path) / path).string();
  BlamedFile blamed{.path = path, .text = std::move(text)};
  FileChanges changes(services.home->path);
  for (const ChatSummary& summary : TRY(services.parts.store.ListChats())) {
    if (!HasWorkedAbove(summary, file, services)) continue;
    const auto chat = services.parts.store.LoadChat(summary.id);
    if (chat) changes.Add(*chat);
    const bool is_gone = !chat && IsNotFound(chat.error());
    if (!is_gone && (!chat || !chat->damaged.empty())) ++blamed.unreadable;
  }
  WorkspaceHistory* const history = workspace.history;
  const auto origins = changes.OriginsOf(
      file, blamed.text, [history](const ChatId& chat, const FileVersion& version) -> Result<std::string> {
        if (history == nullptr) return Fail(ErrorCode::kNotFound, "the changes of this folder are not recorded");
        return history->ContentOf(chat, version);
      });
  if (services.parts.audit != nullptr) changes.ReadPermissions(origins, *services.parts.audit);
  blamed.lost = changes.lost().size();
  Json lines = Json::array();
  for (const BlamedLines& each : LinesInARow(origins, 0, origins.size())) lines.push_back(ToJson(each));
  blamed.lines = DumpJson(lines);
  blamed.text = ToValidUtf8(blamed.text);
  return blamed;
}

}  // namespace reprise
