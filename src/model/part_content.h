#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/file_store.h"
#include "reprise/message.h"

namespace reprise {

// A part's content for a request.
struct PartContent {
  std::string bytes;
  std::string problem{};  // why it is missing, for the model: "(\"x.png\" cannot be sent: ...)"; empty: it is there
};
// Reads the content from the chat's files; `files` may be null.
PartContent ReadPart(const MessagePart& part, FilesOfChat* files);

// Appends "data:TYPE;base64,..." as a JSON string.
void AppendDataUrl(std::string& out, const MessagePart& part, std::string_view bytes);
// Appends the bytes in base64 as a JSON string.
void AppendBase64String(std::string& out, std::string_view bytes);

// The providers' name for a recording's format; empty if they do not accept this type.
std::string_view AudioFormat(const MessagePart& part);

// Approximate size of all messages' parts in a request.
std::size_t EncodedSize(const Messages& messages);

}  // namespace reprise
