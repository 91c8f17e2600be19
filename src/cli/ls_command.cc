#include "cli/ls_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/chat_reader.h"
#include "cli/console.h"
#include "cli/terminal_text.h"
#include "cli/transcript.h"
#include "domain/codec.h"

namespace reprise {
namespace {

constexpr std::size_t kTitleCharacters = 60;

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

int ListChats(InteractionStore& store, bool json) {
  const auto chats = store.ListChats();
  if (!chats) return Complain(chats.error());
  if (json) {
    Json list = Json::array();
    for (const ChatSummary& chat : *chats) list.push_back(ToJson(chat));
    Print(DumpJson(Json{{"chats", std::move(list)}}) + "\n");
    return kExitOk;
  }
  std::size_t width = 0;
  for (const ChatSummary& chat : *chats) width = std::max(width, chat.id.str().size());
  for (const ChatSummary& chat : *chats) {
    Print(Padded(chat.id.str(), width) + "  " + FormatForReading(chat.updated_at) + "  " +
          (chat.head ? chat.head->str() : "-      ") + "  " + VisibleLine(Shortened(chat.title, kTitleCharacters)) +
          "\n");
  }
  return kExitOk;
}

void PrintInteractions(const Chat& chat, bool all) {
  const auto branch = HeadBranch(chat);
  for (const Interaction& interaction : chat.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (superseded && !all) continue;
    Print(interaction.id.str() + "  " + Padded(std::string(ToString(interaction.status)), 9) + "  " +
          FormatForReading(interaction.created_at) + "  " + (superseded ? "(superseded) " : "") +
          VisibleLine(Shortened(interaction.user_message, kTitleCharacters)) + "\n");
  }
}

Json InteractionsToJson(const Chat& chat, bool all) {
  const auto branch = HeadBranch(chat);
  Json list = Json::array();
  for (const Interaction& interaction : chat.interactions) {
    const bool superseded = !branch.contains(interaction.id);
    if (superseded && !all) continue;
    list.push_back({{"id", interaction.id.str()},
                    {"parent_id", interaction.parent_id ? Json(interaction.parent_id->str()) : Json()},
                    {"status", ToString(interaction.status)},
                    {"created_at", FormatTimestamp(interaction.created_at)},
                    {"superseded", superseded},
                    {"user_message", interaction.user_message}});
  }
  return {{"chat", ToJson(chat.summary)}, {"interactions", std::move(list)}};
}

int ListInteractions(InteractionStore& store, const CommandLine& line) {
  const auto id = ChatId::Parse(line.argument);
  if (!id) return Complain(id.error());
  const auto chat = store.LoadChat(*id);
  if (!chat) return Complain(chat.error());
  if (line.json) {
    Print(DumpJson(InteractionsToJson(*chat, line.all_branches)) + "\n");
  } else {
    PrintInteractions(*chat, line.all_branches);
  }
  ComplainOfDamage(*chat);
  return chat->damaged.empty() ? kExitOk : kExitFailure;
}

}  // namespace

int RunLs(const CommandLine& line, const Environment& environment) {
  auto reader = ChatReader::Open(line, environment);
  if (!reader) return Complain(reader.error());
  return line.argument.empty() ? ListChats(reader->store(), line.json) : ListInteractions(reader->store(), line);
}

}  // namespace reprise
