#include "engine/blamed_files.h"

#include <chrono>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/path.h"
#include "base/text.h"
#include "base/try.h"
#include "blame/blamed_lines.h"
#include "blame/file_changes.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

// Whether the chat works, or has begun to work, in a folder that holds the file.
bool HasWorkedAbove(const ChatSummary& chat, const std::string& file, EngineServices& services) {
  const std::string& home = services.home->path;
  if (LiesBeneath(file, FolderOf(chat.workspace, home))) return true;
  const auto first = services.parts.store.LoadInteraction(chat.id, InteractionId::FromNumber(1));
  return first && LiesBeneath(file, FolderOf(first->workspace, home));
}

Error TooMuch(const std::string& path) {
  return MakeError(ErrorCode::kTooLarge, "there is too much on record to look through in time; `reprise blame " + path +
                                             "` on the server's machine has no limit");
}

}  // namespace

Result<BlamedFile> BlameFile(EngineServices& services, const WorkspaceParts& workspace, const std::string& path,
                             std::string text, Clock::duration longest) {
  if (text.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument, path + " is a binary file, which has no lines");
  }
  if (!services.blaming.try_lock()) {
    return Fail(Reason::kOverloaded, "another file's lines are looked up just now; try again");
  }
  const MutexLock lock(services.blaming, std::adopt_lock);
  const auto until = Clock::now() + longest;
  const std::string file = Resolved(std::filesystem::path(workspace.path) / path).string();
  BlamedFile blamed{.path = path, .text = std::move(text)};
  FileChanges changes(services.home->path);
  for (const ChatSummary& summary : TRY(services.parts.store.ListChats())) {
    if (Clock::now() >= until) return Fail(TooMuch(path));
    if (!HasWorkedAbove(summary, file, services)) continue;
    const auto chat = services.parts.store.LoadChat(summary.id);
    if (chat) changes.Add(*chat);
    const bool is_gone = !chat && IsNotFound(chat.error());
    if (!is_gone && (!chat || !chat->damaged.empty())) ++blamed.unreadable;
  }
  WorkspaceHistory* const history = workspace.history;
  const auto origins = changes.OriginsOf(
      file, blamed.text, [history, until](const ChatId& chat, const FileVersion& version) -> Result<std::string> {
        if (Clock::now() >= until) return Fail(ErrorCode::kDeadlineExceeded, "there is no time to read it");
        if (history == nullptr) return Fail(ErrorCode::kNotFound, "the changes of this folder are not recorded");
        return history->ContentOf(chat, version);
      });
  if (Clock::now() >= until) return Fail(TooMuch(path));
  if (services.parts.audit != nullptr) changes.ReadPermissions(origins, *services.parts.audit);
  blamed.lost = changes.lost().size();
  Json lines = Json::array();
  for (const BlamedLines& each : LinesInARow(origins, 0, origins.size())) lines.push_back(ToJson(each));
  blamed.lines = DumpJson(lines);
  blamed.text = ToValidUtf8(blamed.text);
  return blamed;
}

}  // namespace reprise
