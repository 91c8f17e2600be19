#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reprise/file_store.h"
#include "reprise/tool.h"

// Long outputs of commands in the files of a chat. An output is a row of files of about a megabyte, so that neither
// side holds all of it in memory; the id of the first file stands for the row.
namespace reprise {

struct KeptLimits {
  std::size_t from_bytes = 0;    // shorter outputs are not kept
  std::uint64_t chat_bytes = 0;  // of all outputs of the chat together; the oldest ones make room
};

// `filter` removes secrets, piece by piece; empty: there are none. `files` must outlive the keeper.
std::unique_ptr<OutputKeeper> KeepOutput(FilesOfChat& files, std::function<std::string(std::string_view)> filter,
                                         KeptLimits limits);

// Calls `take` with the content of a text file of the chat, or of the whole output that begins with it, piece by piece,
// until it returns false. kInvalidArgument: it is not text. The failures of FilesOfChat::Get.
Result<void> ReadChatText(FilesOfChat& files, const FileId& id, const std::function<bool(std::string_view)>& take);

}  // namespace reprise
