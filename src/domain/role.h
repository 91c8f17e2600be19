#pragma once

#include <string_view>

#include "reprise/message.h"

namespace reprise {

// As the OpenAI chat shape names it: "assistant".
std::string_view RoleName(Role role);

}  // namespace reprise
