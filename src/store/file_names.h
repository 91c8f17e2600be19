#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/ids.h"
#include "reprise/timestamp.h"

// Every name in a data folder is built and parsed here (temporary files: base/atomic_write.h).
//
//   <root>/.lock                                  held by the server that uses the folder
//   <root>/<chat_id>/chat.json
//   <root>/<chat_id>/queue.json                    messages that wait
//   <root>/<chat_id>/interactions/int_001.json
//   <root>/<chat_id>/interactions/int_002.journal  while int_002 runs
//   <root>/<chat_id>/files/file_<32 hex>.json     a file of the chat
//   <root>/<chat_id>/blobs/<64 hex>.json          the former content of a workspace file
//   <root>/<chat_id>/blobs/names.json             the key for the blobs' names
//   <root>/<chat_id>/blobs/position.json          the position of the chat's workspace, if not at its head
//   <root>/.restore.<chat_id>                     while files of the workspace are restored
//   <root>/.running                               the unfinished interactions
//   <root>/.approved_tools                       the tools of other programs that a person has approved
//   <root>/.mcp_logins                           log-ins at MCP servers
//   <root>/.mcp_servers                          the protocol era of each MCP server
//   <root>/.sealed_by                             the keys that its chats are sealed with
//   <root>/.bucket                                the beginning of the names of its objects in a bucket
//   <root>/.grants                               the grants for always
//   <root>/.grants_head                          the generation of the last change of those
//   <root>/.audit_head                           the end of the audit log
//   <root>/audit.jsonl, <root>/audit.<number>.jsonl  the audit log; <number>: of the file's first line
//   <root>/.trash/<chat_id>.<UTC time>.<random>   a deleted chat
//   <root>/.incoming.<random>/<chat_id>           a chat that is being added
namespace reprise {

std::string LockFile(const std::string& root);
std::string ChatDirectory(const std::string& root, const ChatId& chat);
std::string ChatFile(const std::string& root, const ChatId& chat);
std::string QueueFile(const std::string& root, const ChatId& chat);
std::string InteractionsDirectory(const std::string& root, const ChatId& chat);
std::string InteractionFile(const std::string& root, const ChatId& chat, InteractionId id);
std::string JournalPath(const std::string& root, const ChatId& chat, InteractionId id);
std::string FilesDirectory(const std::string& root, const ChatId& chat);
std::string FilesIn(const std::string& chat_directory);  // which may be in the trash
std::string FilePath(const std::string& root, const ChatId& chat, const FileId& id);
std::string BlobsDirectory(const std::string& root, const ChatId& chat);
std::string BlobPath(const std::string& root, const ChatId& chat, std::string_view name);
std::string IntentFile(const std::string& root, const ChatId& chat);
std::optional<ChatId> ParseIntentFile(std::string_view name);
std::string RunningFile(const std::string& root);
std::string ApprovedToolsFile(const std::string& root);
std::string McpServersFile(const std::string& root);
std::string McpLoginsFile(const std::string& root);
std::string SealedByFile(const std::string& root);
std::string BucketFile(const std::string& root);
std::string GrantsFile(const std::string& root);
// An unused name for a file that cannot be read, which is moved there before a new one is written.
std::string DamagedGrantsFile(const std::string& root);
bool IsGrantsFile(const std::string& path);
std::string GrantsHeadFile(const std::string& root);
std::string AuditHeadFile(const std::string& root);
std::string UsedTodayFile(const std::string& root);
// The same for a head.
std::string DamagedHeadFile(const std::string& head);
std::string AuditLogFile(const std::string& root);                       // the one that grows
std::string AuditLogFile(const std::string& root, std::uint64_t first);  // one that grew too large
// The number of the file's first line; the highest possible number for the file that grows.
std::optional<std::uint64_t> ParseAuditFile(std::string_view name);
std::string TrashDirectory(const std::string& root);
// An unused name.
std::string TrashedChat(const std::string& root, const ChatId& chat, Timestamp now);
// An unused name for a folder with the files of a branch that was removed from its chat.
std::string TrashedBranch(const std::string& root, const ChatId& chat, Timestamp now);
std::string TrashedBranches(const std::string& root);  // the folder it is in
// The parts of the name of an entry of the trash.
struct TrashName {
  ChatId chat;
  Timestamp deleted_at;
};
std::optional<TrashName> ParseTrashName(std::string_view name);
// An unused name for a chat.json that cannot be read, which is moved there before a new one is written.
std::string DamagedChatFile(const std::string& root, const ChatId& chat, Timestamp now);

// An unused name for a folder in which a whole chat is assembled before it is moved into its place.
std::string IncomingDirectory(const std::string& root);
bool IsIncomingDirectory(std::string_view name);

// Whether files of this name are made while a chat is assembled or used.
bool IsNameInChat(std::string_view name);

// Whether the data folder itself has folders of this name.
bool IsFolderName(std::string_view name);

// These parse the names of directory entries; nullopt for names that are not ours.
std::optional<ChatId> ParseChatDirectory(std::string_view name);
std::optional<InteractionId> ParseInteractionFile(std::string_view name);
std::optional<InteractionId> ParseJournalFile(std::string_view name);
std::optional<FileId> ParseFileName(std::string_view name);
// The name of a blob, or one of the two names below.
std::optional<std::string> ParseBlobName(std::string_view name);
inline constexpr std::string_view kBlobNames = "names", kBlobPosition = "position";

// The place of a chat's folder, or of one of its files, in a data folder.
struct PlaceInStore {
  enum class Kind { kChatDirectory, kChatFile, kQueue, kCheckpoint, kJournal, kFile, kBlob };
  std::string root;
  ChatId chat;
  Kind kind;
  std::optional<InteractionId> interaction;  // of a checkpoint or a journal
  std::optional<FileId> file{};
  std::string blob{};
};
// A directory counts as a chat's if its name is that of one; the caller has to check whether it is.
std::optional<PlaceInStore> ParseStorePath(const std::string& path);

// Names of records and folders for people and messages: the paths below the root.
std::string RecordName(const ChatId& chat, std::optional<InteractionId> interaction);
std::string QueueName(const ChatId& chat);
std::string InteractionsName(const ChatId& chat);
std::string FilesName(const ChatId& chat);
std::string FileRecordName(const ChatId& chat, const FileId& file);
std::string BlobsName(const ChatId& chat);
std::string BlobRecordName(const ChatId& chat, std::string_view name);
std::string JournalName(const ChatId& chat, InteractionId interaction);

}  // namespace reprise
