#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reprise/file_store.h"
#include "reprise/message.h"
#include "reprise/tool.h"

namespace reprise {

// The file as a part of a message, if it is of a kind that stands in one; nullopt: it is text, or nothing that any
// model takes.
std::optional<MessagePart> PartOf(const FileInfo& info, std::string_view content);

// As people see them.
std::vector<Attachment> AttachmentsOf(const std::vector<MessagePart>& parts);

// Makes what a tool has given beside its text into files of the chat: `outcome.files` become `outcome.parts`, and the
// text names each. What cannot be kept is told in the text.
void KeepFiles(FilesOfChat& files, std::string_view tool_name, ToolOutcome& outcome);

}  // namespace reprise
