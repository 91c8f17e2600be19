#pragma once

#include <string>
#include <vector>

#include "reprise/message.h"

namespace reprise {

// The files of a message or a tool's result, one per line: "[x.png, image/png, 120 bytes]".
inline std::string FileLines(const std::vector<Attachment>& files) {
  std::string lines;
  for (const Attachment& file : files) {
    lines += (lines.empty() ? "[" : "\n[") + file.filename + ", " + file.mime_type + ", " +
             std::to_string(file.size_bytes) + " bytes]" + (file.note.empty() ? "" : " " + file.note);
  }
  return lines;
}

}  // namespace reprise
