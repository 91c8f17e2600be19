#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "blame/file_changes.h"
#include "reprise/interaction.h"

namespace reprise {

// Lines in a row that one call wrote; null: people, or nobody knows.
struct BlamedLines {
  std::size_t from, to;  // from 1, both included
  const ChangingCall* call;
};

// `origins` as OriginsOf gives them; those of the lines [from, to), counted from 0.
std::vector<BlamedLines> LinesInARow(const std::vector<const ChangingCall*>& origins, std::size_t from, std::size_t to);

// "you", or the name of one of several users; "grant" or "auto" if nobody was asked; "unknown" without an audit log.
std::string AllowedBy(const ChangingCall& call);

// As in blame.schema.json.
Json ToJson(const BlamedLines& lines);

// The chat's folder; `home` is that of chats that do not name theirs.
inline const std::string& FolderOf(const std::string& workspace, const std::string& home) {
  return workspace.empty() ? home : workspace;
}

}  // namespace reprise
