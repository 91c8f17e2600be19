#include "store/file_names.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/path.h"
#include "base/system.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kSuffix = ".json", kJournalSuffix = ".journal";
constexpr std::string_view kAuditLog = "audit.jsonl", kAudit = "audit.", kAuditSuffix = ".jsonl";
constexpr std::string_view kChatFile = "chat.json", kQueueFile = "queue.json";
constexpr std::string_view kInteractions = "interactions";
constexpr std::string_view kFiles = "files";
constexpr std::string_view kBlobs = "blobs";
constexpr std::string_view kRestore = ".restore.";
constexpr std::string_view kIncoming = ".incoming.";
constexpr std::string_view kTrash = ".trash";
constexpr std::string_view kGrants = ".grants";

std::string Join(std::string path, std::string_view name) { return path.append("/").append(name); }

// 20250115T100000.000Z: without hyphens, and without colons, which some file systems cannot store.
std::string FileTime(Timestamp time) {
  std::string text = FormatTimestamp(time);
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ':' || c == '-'; }), text.end());
  return text;
}

std::optional<Timestamp> ParseFileTime(std::string_view text) {
  std::string time(text);
  for (const auto& [at, sign] : {std::pair(4u, '-'), std::pair(7u, '-'), std::pair(13u, ':'), std::pair(16u, ':')}) {
    if (time.size() > at) time.insert(at, 1, sign);
  }
  const auto parsed = ParseTimestamp(time);
  if (!parsed || FileTime(*parsed) != text) return std::nullopt;
  return *parsed;
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
std::string QueueFile(const std::string& root, const ChatId& chat) {
  return Join(ChatDirectory(root, chat), kQueueFile);
}
std::string InteractionsDirectory(const std::string& root, const ChatId& chat) {
  return Join(ChatDirectory(root, chat), kInteractions);
}
std::string InteractionFile(const std::string& root, const ChatId& chat, InteractionId id) {
  return Join(InteractionsDirectory(root, chat), id.str()).append(kSuffix);
}
std::string JournalPath(const std::string& root, const ChatId& chat, InteractionId id) {
  return Join(InteractionsDirectory(root, chat), id.str()).append(kJournalSuffix);
}
std::string FilesDirectory(const std::string& root, const ChatId& chat) { return FilesIn(ChatDirectory(root, chat)); }
std::string FilesIn(const std::string& chat_directory) { return Join(chat_directory, kFiles); }
std::string FilePath(const std::string& root, const ChatId& chat, const FileId& id) {
  return Join(FilesDirectory(root, chat), id.str()).append(kSuffix);
}
std::string BlobsDirectory(const std::string& root, const ChatId& chat) {
  return Join(ChatDirectory(root, chat), kBlobs);
}
std::string BlobPath(const std::string& root, const ChatId& chat, std::string_view name) {
  return Join(BlobsDirectory(root, chat), name).append(kSuffix);
}
std::string IntentFile(const std::string& root, const ChatId& chat) {
  return Join(root, std::string(kRestore) + chat.str());
}
std::optional<ChatId> ParseIntentFile(std::string_view name) {
  if (!name.starts_with(kRestore)) return std::nullopt;
  return ParseChatDirectory(name.substr(kRestore.size()));
}
std::string RunningFile(const std::string& root) { return Join(root, ".running"); }
std::string ApprovedToolsFile(const std::string& root) { return Join(root, ".approved_tools"); }
std::string McpServersFile(const std::string& root) { return Join(root, ".mcp_servers"); }
std::string McpLoginsFile(const std::string& root) { return Join(root, ".mcp_logins"); }
std::string SealedByFile(const std::string& root) { return Join(root, ".sealed_by"); }
std::string BucketFile(const std::string& root) { return Join(root, ".bucket"); }
std::string GrantsFile(const std::string& root) { return Join(root, kGrants); }
std::string DamagedGrantsFile(const std::string& root) { return GrantsFile(root) + ".damaged." + RandomHex(4); }
bool IsGrantsFile(const std::string& path) { return std::filesystem::path(path).filename() == kGrants; }
std::string GrantsHeadFile(const std::string& root) { return Join(root, ".grants_head"); }
std::string UsedTodayFile(const std::string& root) { return Join(root, ".used_today"); }
std::string AuditHeadFile(const std::string& root) { return Join(root, ".audit_head"); }
std::string DamagedHeadFile(const std::string& head) { return head + ".damaged." + RandomHex(4); }
std::string AuditLogFile(const std::string& root) { return Join(root, kAuditLog); }
std::string AuditLogFile(const std::string& root, std::uint64_t first) {
  return Join(root, std::string(kAudit) + std::to_string(first) + std::string(kAuditSuffix));
}
std::optional<std::uint64_t> ParseAuditFile(std::string_view name) {
  if (name == kAuditLog) return std::numeric_limits<std::uint64_t>::max();
  if (!name.starts_with(kAudit) || !name.ends_with(kAuditSuffix)) return std::nullopt;
  name = name.substr(kAudit.size(), name.size() - std::min(name.size(), kAudit.size() + kAuditSuffix.size()));
  const auto first = ParseNumber<std::uint64_t>(name);
  return first == 0u ? std::nullopt : first;
}
std::string TrashDirectory(const std::string& root) { return Join(root, kTrash); }
std::string TrashedChat(const std::string& root, const ChatId& chat, Timestamp now) {
  return Join(TrashDirectory(root), chat.str() + "." + FileTime(now) + "." + RandomHex(4));
}
std::string TrashedBranches(const std::string& root) { return Join(TrashDirectory(root), "branches"); }
std::string TrashedBranch(const std::string& root, const ChatId& chat, Timestamp now) {
  return Join(TrashedBranches(root), chat.str() + "." + FileTime(now) + "." + RandomHex(4));
}
std::optional<TrashName> ParseTrashName(std::string_view name) {
  const std::size_t dot = name.find('.');
  const std::size_t last = name.rfind('.');
  if (dot == std::string_view::npos || last <= dot || !IsRandomHex(name.substr(last + 1), 4)) return std::nullopt;
  auto chat = ParseChatDirectory(name.substr(0, dot));
  const auto time = ParseFileTime(name.substr(dot + 1, last - dot - 1));
  if (!chat || !time) return std::nullopt;
  return TrashName{*std::move(chat), *time};
}
std::string DamagedChatFile(const std::string& root, const ChatId& chat, Timestamp now) {
  return ChatFile(root, chat) + ".damaged." + FileTime(now) + "." + RandomHex(4);
}

std::string IncomingDirectory(const std::string& root) { return Join(root, std::string(kIncoming) + RandomHex(8)); }
bool IsIncomingDirectory(std::string_view name) {
  return name.starts_with(kIncoming) && IsRandomHex(name.substr(kIncoming.size()), 8);
}

bool IsNameInChat(std::string_view name) {
  const bool numbered =
      ParseInteractionFile(name) || ParseJournalFile(name) || ParseFileName(name) || ParseBlobName(name);
  return numbered || name == kChatFile || name == kQueueFile || name == ".running" || name == ".lock";
}

bool IsFolderName(std::string_view name) {
  return name == kTrash || IsIncomingDirectory(name) || ParseChatDirectory(name).has_value();
}

std::optional<ChatId> ParseChatDirectory(std::string_view name) {
  auto chat = ChatId::Parse(name);
  if (!chat) return std::nullopt;
  return *std::move(chat);
}

std::optional<InteractionId> ParseInteractionFile(std::string_view name) { return ParseNumbered(name, kSuffix); }
std::optional<InteractionId> ParseJournalFile(std::string_view name) { return ParseNumbered(name, kJournalSuffix); }

std::optional<FileId> ParseFileName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  auto id = FileId::Parse(name.substr(0, name.size() - kSuffix.size()));
  if (!id) return std::nullopt;
  return *std::move(id);
}

std::optional<std::string> ParseBlobName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  if (name != kBlobNames && name != kBlobPosition && !IsRandomHex(name, 32)) return std::nullopt;
  return std::string(name);
}

std::optional<PlaceInStore> ParseStorePath(const std::string& path) {
  const std::filesystem::path whole = FullPath(path);
  const std::filesystem::path file = whole.has_filename() ? whole : whole.parent_path();
  const std::string name = file.filename();
  const auto in_chat = [&](const std::filesystem::path& directory, PlaceInStore::Kind kind,
                           std::optional<InteractionId> id) -> std::optional<PlaceInStore> {
    auto chat = ParseChatDirectory(directory.filename().string());
    if (!chat) return std::nullopt;
    return PlaceInStore{.root = directory.parent_path(), .chat = *std::move(chat), .kind = kind, .interaction = id};
  };
  const std::filesystem::path parent = file.parent_path();
  if (name == kChatFile) return in_chat(parent, PlaceInStore::Kind::kChatFile, std::nullopt);
  if (name == kQueueFile) return in_chat(parent, PlaceInStore::Kind::kQueue, std::nullopt);
  if (parent.filename() == kInteractions) {
    if (const auto id = ParseInteractionFile(name)) {
      return in_chat(parent.parent_path(), PlaceInStore::Kind::kCheckpoint, id);
    }
    if (const auto id = ParseJournalFile(name)) return in_chat(parent.parent_path(), PlaceInStore::Kind::kJournal, id);
  }
  if (parent.filename() == kFiles) {
    if (auto id = ParseFileName(name)) {
      auto place = in_chat(parent.parent_path(), PlaceInStore::Kind::kFile, std::nullopt);
      if (place) place->file = *std::move(id);
      return place;
    }
  }
  if (parent.filename() == kBlobs) {
    if (auto blob = ParseBlobName(name)) {
      auto place = in_chat(parent.parent_path(), PlaceInStore::Kind::kBlob, std::nullopt);
      if (place) place->blob = *std::move(blob);
      return place;
    }
  }
  return in_chat(file, PlaceInStore::Kind::kChatDirectory, std::nullopt);
}

std::string QueueName(const ChatId& chat) { return Join(chat.str(), kQueueFile); }

std::string InteractionsName(const ChatId& chat) { return Join(chat.str(), kInteractions); }
std::string FilesName(const ChatId& chat) { return Join(chat.str(), kFiles); }

std::string FileRecordName(const ChatId& chat, const FileId& file) {
  return Join(Join(chat.str(), kFiles), file.str()).append(kSuffix);
}

std::string BlobsName(const ChatId& chat) { return Join(chat.str(), kBlobs); }

std::string BlobRecordName(const ChatId& chat, std::string_view name) {
  return Join(Join(chat.str(), kBlobs), name).append(kSuffix);
}

std::string JournalName(const ChatId& chat, InteractionId interaction) {
  return Join(Join(chat.str(), kInteractions), interaction.str()).append(kJournalSuffix);
}

std::string RecordName(const ChatId& chat, std::optional<InteractionId> interaction) {
  if (!interaction) return Join(chat.str(), kChatFile);
  return Join(Join(chat.str(), kInteractions), interaction->str()).append(kSuffix);
}

}  // namespace reprise
