#include "client/archive/chat_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "store/chat_files.h"
#include "store/record.h"

namespace reprise {
namespace {

Error Ambiguous(std::string_view text, const std::vector<const NamedChat*>& chats, const ChatNames& names) {
  constexpr std::size_t kMostNamed = 5, kTitle = 40;
  std::string list;
  for (std::size_t i = 0; i < std::min(kMostNamed, chats.size()); ++i) {
    const std::string title = VisibleLine(Shortened(chats[i]->title, kTitle));
    list += (i == 0 ? "" : ", ") + VisibleLine(chats[i]->id) + (title.empty() ? "" : " \"" + title + "\"");
  }
  return MakeError(ErrorCode::kConflict, "\"" + std::string(text) + "\" means any of " + Counted(chats.size(), "chat") +
                                             " " + names.where + ": " + list +
                                             (chats.size() > kMostNamed ? ", ..." : "") + " (" + names.hint + ")");
}

}  // namespace

ChatNames NamesIn(InteractionStore& store, const std::string& where) {
  const auto has = [&](const ChatId& chat) -> Result<bool> {
    const auto summary = store.LoadSummary(chat);
    return summary || summary.error().code != ErrorCode::kNotFound;
  };
  const auto all = [&]() -> Result<std::vector<NamedChat>> {
    std::vector<NamedChat> chats;
    for (const ChatSummary& chat : TRY(store.ListChats())) chats.push_back({chat.id.str(), chat.title});
    for (const UnreadableChat& chat : TRY(store.ListUnreadableChats())) chats.push_back({chat.id.str(), ""});
    return chats;
  };
  return {.has = has, .all = all, .where = "in " + where};
}

ChatNames IdsIn(const std::string& root, FileSystem& file_system, const std::string& where) {
  const auto all = [root, &file_system]() -> Result<std::vector<NamedChat>> {
    std::vector<NamedChat> chats;
    // Reads only names, so the record format does not matter.
    for (const ChatId& chat : TRY(ChatFiles(root, MakeRecordFormat(nullptr), file_system).ListChats())) {
      chats.push_back({chat.str(), ""});
    }
    return chats;
  };
  return {.has = [](const ChatId&) -> Result<bool> { return false; }, .all = all, .where = "in " + where};
}

Result<ChatId> FindChat(std::string_view text, const ChatNames& names) {
  auto id = ChatId::Parse(text);
  if (id && TRY(names.has(*id))) return id;
  const std::vector<NamedChat> known = IsBlank(text) ? std::vector<NamedChat>() : TRY(names.all());
  // From the best match to the least.
  std::array<std::vector<const NamedChat*>, 4> found;
  const std::string wanted = LowerCase(text);
  std::vector<std::string> ids;
  for (const NamedChat& chat : known) {
    const std::string title = LowerCase(chat.title);
    ids.push_back(chat.id);
    if (chat.id == text) found[0].push_back(&chat);
    if (title == wanted) found[1].push_back(&chat);
    if (chat.id.starts_with(text) || title.starts_with(wanted)) found[2].push_back(&chat);
    if (names.takes_parts && title.find(wanted) != std::string::npos) found[3].push_back(&chat);
  }
  for (const auto& chats : found) {
    if (chats.size() == 1) return ChatId::Parse(chats.front()->id);
    if (!chats.empty()) return Fail(Ambiguous(text, chats, names));
  }
  if (id) return Fail(NoSuchChat(*id, names, ids));
  id.error().message = "\"" + std::string(text) + "\" names no chat " + names.where + ": " + id.error().message +
                       ", and no title begins so (" + names.hint + ")";
  return id;
}

Result<RecordReference> FindRecord(std::string_view text, const ChatNames& names) {
  const std::size_t slash = text.rfind('/');
  std::optional<InteractionId> interaction;
  if (slash != std::string_view::npos) {
    if (const auto parsed = InteractionId::Parse(text.substr(slash + 1))) interaction = *parsed;
  }
  auto chat = FindChat(interaction ? text.substr(0, slash) : text, names);
  if (chat) return RecordReference{*chat, interaction};
  if (auto exact = ParseReference(text); !exact && chat.error().code == ErrorCode::kInvalidArgument) return exact;
  return Fail(std::move(chat.error()));
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

Error NoSuchChat(const ChatId& chat, const ChatNames& names, std::span<const std::string> known) {
  return MakeError(ErrorCode::kNotFound, "there is no chat " + chat.str() + " " + names.where +
                                             DidYouMean(chat.str(), known) + " (" + names.hint + ")");
}

}  // namespace reprise
