#pragma once

#include <string>

#include "reprise/message.h"

namespace reprise {

// A file that went with a message, or that a tool has given, on one line: "[x.png, 12 KB]", and what became of it.
std::string FileText(const Attachment& file);

}  // namespace reprise
