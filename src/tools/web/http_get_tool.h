#pragma once

#include <memory>

#include "reprise/transport.h"
#include "tools/builtin_tool.h"
#include "tools/tool_options.h"

namespace reprise {

// http_get through `transport`, which must outlive the tool. Reaches public addresses only unless the options say
// otherwise.
std::unique_ptr<BuiltinTool> MakeHttpGetTool(Transport& transport, HttpGetOptions options);

}  // namespace reprise
