#include "store/unsaved.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/logging.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "store/chat_files.h"
#include "store/data_folder.h"
#include "store/file_interaction_store.h"
#include "store/file_names.h"

namespace reprise {
namespace {

// A directory from the environment; a relative one counts as not set (XDG Base Directory Specification).
std::string EnvironmentDirectory(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? std::string(value) : std::move(otherwise);
}

std::string HomeDirectory() {
  const passwd* user = ::getpwuid(::getuid());
  return EnvironmentDirectory("HOME", user != nullptr ? user->pw_dir : "/");
}

std::string FolderTag(const std::string& data_folder) {
  std::error_code error;
  const auto canonical = std::filesystem::weakly_canonical(std::filesystem::absolute(data_folder, error), error);
  const std::string digest = Sha256Digest({error ? data_folder : canonical.string()});
  return digest.substr(digest.find(':') + 1, 16);
}

// Becomes the head only where the running server's next turn would have continued it (Interactions::RescuedAfter): not
// if the chat has gone on, or its head was moved.
Result<void> SaveBelowHead(const Interaction& interaction, InteractionStore& home) {
  const auto before = home.LoadSummary(interaction.chat_id);
  TRY(home.SaveInteraction(interaction));
  if (!before || !before->head || before->head == interaction.parent_id || before->head == interaction.id) return {};
  return home.MoveHead(interaction.chat_id, *before->head).map([](const ChatSummary&) {});
}

// Whether `saved` is the same interaction, which did reach the disk after it was reported as unsaved: it has all but
// the event of that report.
bool IsSavedAfterAll(const Interaction& unsaved, const Interaction& saved) {
  const auto has = [&](const AgentEvent& event) {
    return std::ranges::find(unsaved.events, event) != unsaved.events.end();
  };
  return saved.created_at == unsaved.created_at && saved.parent_id == unsaved.parent_id &&
         saved.user_message == unsaved.user_message && saved.final_agent_state == unsaved.final_agent_state &&
         std::ranges::all_of(saved.events, has);
}

Result<void> Bring(const Interaction& unsaved, InteractionStore& home) {
  auto saved = SaveBelowHead(unsaved, home);
  if (saved || !saved.error().Is(Reason::kInteractionExists)) return saved;
  const auto there = home.LoadInteraction(unsaved.chat_id, unsaved.id);
  return there && IsSavedAfterAll(unsaved, *there) ? Result<void>() : saved;
}

Result<void> MoveHome(const ChatFiles& files, const ChatId& chat, InteractionId id, InteractionStore& home) {
  return files.ReadInteraction(chat, id)
      .and_then([&](const StoredInteraction& stored) { return Bring(stored.interaction, home); })
      .and_then([&] { return files.RemoveInteraction(chat, id); });
}

// For tidiness only, and for the real disk only. Directories that are missing or not empty are left alone.
void RemoveEmptyDirectories(const std::string& folder, const ChatId& chat) {
  std::error_code ignored;
  std::filesystem::remove(InteractionsDirectory(folder, chat), ignored);
  std::filesystem::remove(ChatDirectory(folder, chat), ignored);
}

}  // namespace

std::array<std::string, 2> UnsavedFolders(const std::string& data_folder) {
  const std::string tag = FolderTag(data_folder);
  return {EnvironmentDirectory("XDG_STATE_HOME", HomeDirectory() + "/.local/state") + "/reprise/unsaved/" + tag,
          EnvironmentDirectory("TMPDIR", "/tmp") + "/reprise-" + std::to_string(::getuid()) + "/unsaved/" + tag};
}

std::unique_ptr<InteractionStore> OpenUnsavedStore(const std::string& folder, std::shared_ptr<const KeySet> keys,
                                                   FileSystem& file_system) {
  auto store = FileInteractionStore::Open({.root = folder,
                                           .keys = std::move(keys),
                                           .file_system = file_system,
                                           .access = FileInteractionStore::Access::kFallback});
  return *std::move(store);  // opening a fallback folder touches nothing, so it cannot fail
}

Result<BroughtHome> BringHome(const std::string& folder, std::shared_ptr<const KeySet> keys, FileSystem& file_system,
                              InteractionStore& home) {
  const ChatFiles files(folder, MakeRecordFormat(std::move(keys)), file_system);
  const auto chats = files.ListChats();
  if (!chats && IsNotFound(chats.error())) return BroughtHome{};
  if (!chats) return Fail(chats.error());
  // Sealed content would be safe, but plain content that another user has put there would not.
  TRY(CheckPrivateDirectory(folder));
  BroughtHome result;
  for (const ChatId& chat : *chats) {
    const auto numbers =
        TRY(files.ListInteractions(chat).map([](InteractionFiles found) { return found.checkpoints; }));
    for (const std::uint32_t number : numbers) {
      const InteractionId id = InteractionId::FromNumber(number);
      const auto moved = MoveHome(files, chat, id, home);
      ++(moved ? result.moved : result.left);
      if (moved) continue;
      LogWarning("an unsaved interaction stays in the fallback folder",
                 {{"chat", chat.str()}, {"interaction", id.str()}, {"reason", moved.error().reason}});
    }
    RemoveEmptyDirectories(folder, chat);
  }
  if (result.moved > 0) LogInfo("unsaved interactions brought home", {{"count", result.moved}});
  return result;
}

}  // namespace reprise
