#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/file_store.h"
#include "reprise/message.h"

namespace reprise {

// The content of a part, as it is put into a request.
struct PartContent {
  std::string bytes;
  std::string problem{};  // why there is none, for the model: "(\"x.png\" cannot be sent: ...)"; empty: there is
};
// Reads it from the files of the chat; `files` may be null.
PartContent ReadPart(const MessagePart& part, FilesOfChat* files);

// Appends "data:TYPE;base64,..." as a JSON string.
void AppendDataUrl(std::string& out, const MessagePart& part, std::string_view bytes);
// Appends the bytes in base64 as a JSON string.
void AppendBase64String(std::string& out, std::string_view bytes);

// How providers call the format of a recording; empty: they take none of this type.
std::string_view AudioFormat(const MessagePart& part);

// About what the parts of all messages take in a request.
std::size_t EncodedSize(const Messages& messages);

}  // namespace reprise
