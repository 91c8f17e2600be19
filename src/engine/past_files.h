#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/timestamp.h"
#include "reprise/workspace_change.h"
#include "reprise/workspace_copies.h"

namespace reprise {

// The changes of files that chats have recorded in one workspace, to tell what the files were at an earlier moment.
//
//   RecordedChanges changes("/home/me/project", "/home/me/project");
//   for (const Chat& chat : chats) changes.Add(chat);
//   PastFiles then = changes.At(interaction, 12);
//   then.content = [&](const FileVersion& version) { return ContentIn(changes.ChatsWith(version.digest), version); };
class RecordedChanges {
 public:
  // `home`: the workspace of chats that do not name theirs.
  RecordedChanges(std::string workspace, const std::string& home)
      : workspace_(std::move(workspace)), is_home_(workspace_ == home) {}

  // Ignores what was done in other workspaces.
  void Add(const Interaction& interaction);
  void Add(const Chat& chat) {
    for (const Interaction& each : chat.interactions) Add(each);
  }

  // What differs from now when the interaction showed its event `seq`; 0: when it began. Without `content`.
  PastFiles At(const Interaction& interaction, std::uint64_t seq) const;
  // The chats that recorded this content.
  std::vector<ChatId> ChatsWith(const std::string& digest) const;

 private:
  struct Change {
    Timestamp at;
    InteractionRef of;
    std::uint64_t seq;
    std::optional<FileVersion> before, after;
  };

  const std::string workspace_;
  const bool is_home_;
  std::map<std::string, std::vector<Change>> changes_;  // by path
  std::map<std::string, std::vector<ChatId>> kept_;     // by digest
};

// The moment of an event, or of the beginning of the interaction if there is none with this number.
Timestamp MomentOf(const Interaction& interaction, std::uint64_t seq);

}  // namespace reprise
