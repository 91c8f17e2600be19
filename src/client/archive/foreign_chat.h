#pragma once

#include <string>
#include <vector>

#include "engine/chat_document.h"
#include "reprise/result.h"

namespace reprise {

// The paths of the chats in `path`: a chat's folder or a JSON document is itself one, another folder holds some.
// kNotFound; kInvalidArgument if it is none of these.
Result<std::vector<std::string>> FindForeignChats(const std::string& path);

// Reads a chat from a folder or a document of plain JSON (engine/chat_document). kInvalidArgument if anything in it is
// unusable; the message names the file and the fault.
Result<ForeignChat> ReadForeignChat(const std::string& path);

}  // namespace reprise
