#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The folder, outside the workspace and for this user only, that holds the start folders of MCP servers: reprise/mcp of
// $XDG_RUNTIME_DIR, else of $XDG_CACHE_HOME (~/.cache), else reprise-<uid>/mcp of $TMPDIR (/tmp). Created if missing.
// Empty if none is usable; servers with a `cwd` start all the same.
std::string McpFolder(const Options& options);

// Logins at the configured MCP servers (`reprise mcp`), stored in the data folder. A running server uses a new login
// when its MCP server next wants a token.

// kNotFound if no server of this name is configured.
Result<McpServerOptions> FindMcpServer(const Options& options, const std::string& name);

enum class McpLoginState { kNotNeeded, kLoggedOut, kLoggedIn };
Result<McpLoginState> ReadMcpLogin(const Options& options, const McpServerOptions& server);

// Connects to the server and, if it wants that, lets a person log in: `show` gets the URL to open, and the browser
// returns to `port` of this machine (0: any). False if a login was not needed or exists already.
Result<bool> LogInAtMcp(const Options& options, const McpServerOptions& server, std::uint16_t port,
                        const std::function<void(const std::string& url)>& show);
// False if nobody was logged in.
Result<bool> LogOutAtMcp(const Options& options, const McpServerOptions& server);

}  // namespace reprise
