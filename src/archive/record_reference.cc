#include "archive/record_reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/text.h"
#include "store/chat_files.h"

namespace reprise {

Error NoDataFolder(const std::string& data_dir) {
  return MakeError(ErrorCode::kNotFound, "there is no data folder " + FullPath(data_dir) +
                                             " (--data-dir names another one, `reprise serve` makes one)");
}

ChatId WithUniqueBeginning(const ChatId& chat, std::span<const ChatId> known) {
  const ChatId* only = nullptr;
  for (const ChatId& each : known) {
    if (each == chat) return chat;
    if (!each.str().starts_with(chat.str())) continue;
    if (only != nullptr) return chat;
    only = &each;
  }
  return only != nullptr ? *only : chat;
}

Error NoSuchChat(const ChatId& chat, const std::string& where, std::span<const std::string> known) {
  const auto begins = [&](const std::string& id) { return id.starts_with(chat.str()); };
  if (const auto several = std::count_if(known.begin(), known.end(), begins); several > 1) {
    return MakeError(ErrorCode::kNotFound, std::to_string(several) + " chats in " + where + " begin with " +
                                               chat.str() + " (`reprise ls` lists them)");
  }
  return MakeError(ErrorCode::kNotFound, "there is no chat " + chat.str() + " in " + where +
                                             DidYouMean(chat.str(), known) + " (`reprise ls` lists them)");
}

Error NotThere(Error error, const RecordReference& what, const std::string& data_dir) {
  if (error.code != ErrorCode::kNotFound) return error;
  const std::string chat = what.chat.str();
  if (what.interaction && IsDirectory(data_dir + "/" + chat)) {
    error.message = "there is no " + chat + "/" + what.interaction->str() + " in " + FullPath(data_dir) +
                    " (`reprise ls " + chat + " --all` lists its interactions)";
    return error;
  }
  std::vector<std::string> known;
  if (const auto chats = ChatFiles(data_dir, MakeRecordFormat(nullptr), Disk()).ListChats()) {
    for (const ChatId& other : *chats) known.push_back(other.str());
    std::sort(known.begin(), known.end());
  }
  return NoSuchChat(what.chat, FullPath(data_dir), known);
}

Result<RecordReference> ParseReference(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto named = [&](Error error) {
    error.message = "\"" + std::string(text) + "\" names nothing: " + error.message;
    return Fail(std::move(error));
  };
  auto chat = ChatId::Parse(text.substr(0, slash));
  if (!chat) return named(std::move(chat.error()));
  if (slash == std::string_view::npos) return RecordReference{*chat, std::nullopt};
  auto interaction = InteractionId::Parse(text.substr(slash + 1));
  if (!interaction) return named(std::move(interaction.error()));
  return RecordReference{*chat, *interaction};
}

bool HasChat(InteractionStore& store, const ChatId& chat) {
  const auto summary = store.LoadSummary(chat);
  return summary || summary.error().code != ErrorCode::kNotFound;
}

}  // namespace reprise
