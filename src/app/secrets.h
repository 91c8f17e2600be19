#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/options.h"

namespace reprise {

// Whether a variable, a header or a parameter with this name holds a secret.
bool NamesSecret(std::string_view name);

// What no tool may repeat (base/text.h): the keys of providers and of the bucket, what MCP servers are sent in
// headers and in their URLs' queries, and whatever the environment, the server's own (NAME=VALUE, ended by null) or one
// configured for an MCP server, has under the name of a secret.
std::vector<std::string> SecretsOf(const Options& options, const char* const* environment);

// What names a database, for people to read: passwords in it are "***".
std::string WithoutPassword(std::string url);

}  // namespace reprise
