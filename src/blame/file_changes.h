#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "blame/blame.h"
#include "reprise/audit_log.h"
#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// A tool call that changed files.
struct ChangingCall {
  ChatId chat;
  InteractionId interaction;
  std::string id, tool, model;
  Timestamp at;  // of the change
  struct Approval {
    event::Approved answer;
    std::string terms_digest;
    Timestamp at;
  };
  std::optional<Approval> approval{};      // nullopt: nobody was asked
  std::string permission{};                // then AuditEntry::reason of its start; empty: unknown
  std::vector<std::string> read_before{};  // paths that the turn had read with read_file

  std::string turn() const { return chat.str() + "/" + interaction.str(); }
};

// The content of a version of a file as a chat has kept it.
using ContentOfVersion = std::function<Result<std::string>(const ChatId& chat, const FileVersion& version)>;

// The changes of files that chats have recorded.
//
//   FileChanges changes("/home/me/project");
//   changes.Add(chat);
//   for (const auto& call : changes.OriginsOf("/home/me/project/main.cc", text, content)) Print(call ? call->tool :
//   "you");
class FileChanges {
 public:
  // `workspace`: of chats that do not name theirs.
  explicit FileChanges(std::string workspace) : workspace_(std::move(workspace)) {}

  // Leaves out what is imported, because nobody here has seen that.
  void Add(const Chat& chat);

  // For each line of `present`, the content of the file at this absolute path: the call that wrote it; null: people, or
  // nobody knows. The calls live as long as this does. Call it once.
  std::vector<const ChangingCall*> OriginsOf(const std::string& path, std::string_view present,
                                             const ContentOfVersion& content_of);
  // The contents that OriginsOf could not read, by digest.
  const std::set<std::string>& lost() const { return lost_; }
  // Fills in `permission` for the calls of `origins` that nobody was asked about. A log that cannot be read is left
  // out.
  void ReadPermissions(const std::vector<const ChangingCall*>& origins, const AuditLog& log);

 private:
  struct Change {
    Timestamp at;
    Timestamp chat_created;  // of two copies the older chat's counts
    BlamedChange what;
    std::optional<std::size_t> call;
  };
  void Add(const Interaction& interaction, Timestamp chat_created);

  const std::string workspace_;
  std::vector<Change> changes_;
  std::vector<ChangingCall> calls_;
  std::size_t turns_ = 0;
  std::map<std::string, std::string> tools_;      // of the chat being added, by call
  std::map<std::string, std::set<ChatId>> kept_;  // by digest: the chats that have this content
  std::set<std::string> lost_;
};

}  // namespace reprise
