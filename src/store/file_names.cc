#include "store/file_names.h"

#include <algorithm>

#include "base/random.h"

namespace reprise {
namespace {

constexpr std::string_view kSuffix = ".json", kJournalSuffix = ".journal";
constexpr std::string_view kChatFile = "chat.json";
constexpr std::string_view kInteractions = "interactions";

std::string Join(std::string path, std::string_view name) { return path.append("/").append(name); }

// 20250115T100000.000Z: without the colons, which some file systems cannot store.
std::string FileTime(Timestamp time) {
  std::string text = FormatTimestamp(time);
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ':' || c == '-'; }), text.end());
  return text;
}

std::optional<InteractionId> ParseNumbered(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  name.remove_suffix(suffix.size());
  const auto id = InteractionId::Parse(name);
  if (!id) return std::nullopt;
  return *id;
}

}  // namespace

std::string LockFile(const std::string& root) { return Join(root, ".lock"); }
std::string ChatDirectory(const std::string& root, const ChatId& chat) { return Join(root, chat.str()); }
std::string ChatFile(const std::string& root, const ChatId& chat) { return Join(ChatDirectory(root, chat), kChatFile); }
std::string InteractionsDirectory(const std::string& root, const ChatId& chat) {
  return Join(ChatDirectory(root, chat), kInteractions);
}
std::string InteractionFile(const std::string& root, const ChatId& chat, InteractionId id) {
  return Join(InteractionsDirectory(root, chat), id.str()).append(kSuffix);
}
std::string JournalPath(const std::string& root, const ChatId& chat, InteractionId id) {
  return Join(InteractionsDirectory(root, chat), id.str()).append(kJournalSuffix);
}
std::string RunningFile(const std::string& root) { return Join(root, ".running"); }
std::string SpareDirectory(const std::string& root) { return Join(root, ".spare"); }
std::string TrashDirectory(const std::string& root) { return Join(root, ".trash"); }
std::string TrashedChat(const std::string& root, const ChatId& chat, Timestamp now) {
  return Join(TrashDirectory(root), chat.str() + "." + FileTime(now) + "." + RandomHex(4));
}
std::string DamagedChatFile(const std::string& root, const ChatId& chat, Timestamp now) {
  return ChatFile(root, chat) + ".damaged." + FileTime(now) + "." + RandomHex(4);
}

std::optional<ChatId> ParseChatDirectory(std::string_view name) {
  auto chat = ChatId::Parse(name);
  if (!chat) return std::nullopt;
  return *std::move(chat);
}

std::optional<InteractionId> ParseInteractionFile(std::string_view name) { return ParseNumbered(name, kSuffix); }
std::optional<InteractionId> ParseJournalFile(std::string_view name) { return ParseNumbered(name, kJournalSuffix); }

std::string RecordName(const ChatId& chat, std::optional<InteractionId> interaction) {
  if (!interaction) return Join(chat.str(), kChatFile);
  return Join(Join(chat.str(), kInteractions), interaction->str()).append(kSuffix);
}

}  // namespace reprise
