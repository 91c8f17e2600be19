#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "engine/moves/formats.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// The sessions that a person wants of other tools.
struct WantedSessions {
  std::string from{};                // the name of a format; empty: any
  std::vector<std::string> paths{};  // files and folders; empty: the folders of `from`
  std::string folder{};              // only those of agents that worked in it; empty: any
  std::optional<Timestamp> since{};  // only those that have changed since
};

// The folders in which a tool keeps its sessions, whether they exist or not; empty for a format that is exported.
std::vector<std::string> FoldersOfTool(std::string_view format, const Environment& environment);

// Whether the file or folder holds sessions of other tools in a form that is known here. Of a file: why that cannot be
// told.
Result<bool> HoldsForeignSessions(const std::string& path);

// Sessions that are not among those wanted.
struct PassedOver {
  std::size_t sessions = 0;        // or files that were not looked into, because they are older
  std::size_t without_folder = 0;  // of these: a folder is wanted, and they say none
};

// Visits what is wanted, one by one. What cannot be read is told to `failed`, with its path, and the others go on.
// kNotFound if a path is missing, kInvalidArgument if a file has no known form; both name the next step.
Result<PassedOver> ForEachForeignSession(const WantedSessions& wanted, const Environment& environment,
                                         const std::function<Result<void>(FoundSession)>& visit,
                                         const std::function<void(const std::string& path, Error error)>& failed);

// Whether several chats would be imported: `chats` of our own, and of the sessions those that have messages.
bool HasSeveral(const WantedSessions& wanted, const Environment& environment, std::size_t chats);

// "90d", "12h", or a date as 2026-01-31. nullopt: neither.
std::optional<Timestamp> ParseSince(const std::string& text);

}  // namespace reprise
