#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/workspace_change.h"

namespace reprise {

// A recorded change, for Blame.
struct BlamedChange {
  std::string path;  // absolute
  std::optional<FileVersion> before{}, after{};
  bool by_agent = false;           // made by a tool call; else by people or by unknown programs
  std::size_t turn = 0, call = 0;  // numbers of the turn and of the call in it. Two neighbouring calls can be a rename.
};

// What Blame asks its caller.
struct BlameSources {
  // The content of a file's version; nullopt: it is not kept.
  std::function<std::optional<std::string>(const FileVersion& version)> content;
  // Whether there is a file at this path now.
  std::function<bool(const std::string& path)> is_there;
};

// Finds out which call wrote each line of a file. `changes` are those of all paths, in the order of time; others than
// `path` matter if the file had their name before. `present` is the file's content. Returns for each line the index of
// the change that wrote it; nullopt: people did, or nobody knows.
//
// A line is a call's only if that is certain:
// - Edits between two recorded changes are those of people. A version that is not kept is unknown, and so are its
// lines.
// - A version that was there before, byte for byte, keeps the origins that its lines had then, whoever restored it.
// - Of equal lines near each other, some by people and some by the agent, none counts as the agent's if any of them was
//   added, removed or moved. A line of a person that a call has moved stays the person's.
//
//   const auto origins = Blame("/home/me/project/main.cc", text, changes, sources);
//   if (origins[0]) Print("line 1 is by call " + std::to_string(changes[*origins[0]].call));
std::vector<std::optional<std::size_t>> Blame(const std::string& path, std::string_view present,
                                              const std::vector<BlamedChange>& changes, const BlameSources& sources);

}  // namespace reprise
