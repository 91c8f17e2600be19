#pragma once

#include "document/output.h"

namespace reprise::document {

// The text on stdin, which is in UTF-16 (with its mark, or known by its zeros) or in Windows-1252, as UTF-8. What is no
// character becomes U+FFFD.
void ReadEncodedText(Output& out);

}  // namespace reprise::document
