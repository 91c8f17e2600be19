#pragma once

#include <string>
#include <vector>

#include "engine/chat_document.h"
#include "reprise/result.h"

namespace reprise {

// Where chats lie in what was named: a chat's folder and a JSON document stand for themselves, another folder for the
// chats in it. kNotFound, kInvalidArgument if it is none of these.
Result<std::vector<std::string>> FindForeignChats(const std::string& path);

// A chat from a folder or a document of plain JSON (engine/chat_document). kInvalidArgument if anything in it cannot be
// used; the message names the file and what is wrong.
Result<ForeignChat> ReadForeignChat(const std::string& path);

}  // namespace reprise
