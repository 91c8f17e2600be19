#pragma once

#include "document/output.h"

namespace reprise::document {

// The text of an HTML page, which stdin holds: without scripts, styles and tags. Nothing is fetched. Throws Unreadable.
void ReadHtml(Output& out);

}  // namespace reprise::document
