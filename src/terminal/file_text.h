#pragma once

#include <string>

#include "reprise/message.h"

namespace reprise {

// A file of a message or a tool's result, on one line: "[x.png, 12 KB]", and its note.
std::string FileText(const Attachment& file);

}  // namespace reprise
