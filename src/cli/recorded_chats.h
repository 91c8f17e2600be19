#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "app/present_folders.h"
#include "base/mutex.h"
#include "base/system.h"
#include "cli/grader.h"
#include "cli/suite_checks.h"
#include "client/archive/chat_names.h"
#include "client/archive/chat_reader.h"
#include "engine/past_files.h"
#include "engine/request_body.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"
#include "reprise/workspace_copies.h"

namespace reprise {

inline constexpr std::string_view kChecksEnding = ".checks.json", kAcceptedEnding = ".accepted.json",
                                  kSuiteFile = "suite.json";

// A recorded chat, stored or exported. What it refers to lives as long as the call that gives it.
struct RecordedChat {
  std::string name;
  std::string path{};  // of an exported chat; empty: a stored one
  std::string file{};  // the same without ".json"
  ChatId chat;
  RequestBodies* bodies;
  std::vector<InteractionId> turns{};   // on the branch to the head or to `only`, the first one first
  std::optional<InteractionId> only{};  // the one that was named; nullopt: all
  std::string chosen_model{};
  Effort effort = Effort::kDefault;
  std::string instructions{};
  ContentOf content_of{};
  std::vector<DamagedInteraction> damaged{};
  bool is_whole = true;  // it lacks no turn
  // What its workspace held at an event of a turn; 0: when the turn began. From any thread.
  std::function<Result<PastFiles>(const Interaction& turn, std::uint64_t seq)> files_at{};
};

// Who takes recorded chats one after the other.
class RecordedChatTaker {
 public:
  virtual ~RecordedChatTaker() = default;
  virtual Result<void> Take(const RecordedChat& chat) = 0;
  // An exported chat that cannot be read or is not whole, or something that cannot be a part of a suite.
  virtual void TakeBroken(const std::string& name, const std::string& file, const Error& why) = 0;
};

// Reads the chats that people name. Keeps what it has learned of workspaces.
//
//   RecordedChats chats(line.flags, environment);
//   for (const std::string& what : line.arguments) status = std::max(status, chats.TakeOrComplain(what, taker));
class RecordedChats {
 public:
  // Both must outlive it.
  RecordedChats(const Flags& flags, const Environment& environment) : flags_(flags), environment_(environment) {}

  // Gives the chats that an argument names: a folder of exported chats, one of them or a turn of it
  // (suite/trip.json/int_002), CHAT or CHAT/INTERACTION. False: it names none of them. The failures of FindStored,
  // kNotFound if there is no such record, and those of `taker`.
  Result<bool> Take(const std::string& what, RecordedChatTaker& taker);
  // The same, where what cannot be taken is to stop no others: complains of it. Returns the exit status for it alone.
  int TakeOrComplain(const std::string& what, RecordedChatTaker& taker);
  // Whether it names any, without a look into them beyond what checks need. Fails likewise, and if something cannot be
  // a part of the suite.
  Result<bool> Check(const std::string& what);
  // The path in an argument that names exported chats or a turn of one; empty: it names none.
  static std::string PathIn(const std::string& what);

 private:
  Result<void> TakeExported(const std::string& path, std::optional<InteractionId> only, RecordedChatTaker& taker);
  Result<void> TakeStored(ChatReader& reader, const RecordReference& what, RecordedChatTaker& taker);
  Result<PastFiles> FilesAt(ChatReader& reader, const Interaction& turn, std::uint64_t seq);

  const Flags& flags_;
  const Environment& environment_;
  Mutex mutex_;
  std::map<std::string, RecordedChanges> changes_ GUARDED_BY(mutex_);  // by workspace
};

// The agent of today for the chat's turns: an exported chat has that of this folder, wherever it was recorded.
Result<PresentAgent> AgentFor(PresentFolders& present, const RecordedChat& chat, const Interaction& turn);

// For the `command` checks beside this file (RecordedChat::file); null if it is empty.
std::shared_ptr<const Grader> GraderFor(const std::string& file);

// A small JSON file of the suite; nullopt if there is none. kInvalidArgument if something else has its name.
Result<std::optional<std::string>> ReadSmall(const std::string& path);

// The checks beside an exported chat, those for all chats of its folder first; none of a stored one. kInvalidArgument
// if its own name a turn that it lacks. `faulty` names the file of a failure.
Result<std::vector<SuiteChecks>> ChecksBeside(const RecordedChat& chat, std::string& faulty);

}  // namespace reprise
