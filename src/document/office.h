#pragma once

#include "document/output.h"

namespace reprise::document {

// The text of a document in a ZIP archive, which stdin holds: docx, xlsx, pptx (Office Open XML), odt, ods, odp
// (OpenDocument). What it is, the archive says. Throws Unreadable.
void ReadOffice(Output& out);

}  // namespace reprise::document
