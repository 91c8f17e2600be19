#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "reprise/options.h"
#include "reprise/result.h"

// Logging in at the configured MCP servers (`reprise mcp`), in the data folder of the options. A server that runs there
// takes up what changes when its MCP server next wants a token.
namespace reprise {

// kNotFound if no server of this name is configured.
Result<McpServerOptions> FindMcpServer(const Options& options, const std::string& name);

enum class McpLoginState { kNotNeeded, kLoggedOut, kLoggedIn };
Result<McpLoginState> ReadMcpLogin(const Options& options, const McpServerOptions& server);

// Connects to the server and has a person log in if it wants that: `show` gets the URL to open, and the browser comes
// back to a port of this machine (0: any). False: the server wanted nothing, as a log-in counts already.
Result<bool> LogInAtMcp(const Options& options, const McpServerOptions& server, std::uint16_t port,
                        const std::function<void(const std::string& url)>& show);
// False: nobody was logged in.
Result<bool> LogOutAtMcp(const Options& options, const McpServerOptions& server);

}  // namespace reprise
