#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "reprise/result.h"

// The tools and resources that MCP clients can use here.
namespace reprise::mcp_door {

Json ToolList();
bool IsTool(const std::string& name);

// Read the arguments of a call. kInvalidArgument: the message names the argument.
// `tool` has an argument of each of these names.
Result<void> CheckNames(const std::string& tool, const Json& arguments);
Result<std::string> NeededText(const Json& arguments, const char* name);
Result<std::optional<std::string>> TextIn(const Json& arguments, const char* name);
Result<std::int64_t> NumberIn(const Json& arguments, const char* name, std::int64_t usual, std::int64_t most);

// Chats as resources: "reprise://chats/ID".
std::string ChatUri(const std::string& chat);
std::optional<std::string> ChatInUri(const std::string& uri);
Json ResourceTemplates();

// The only prompt: the contents of a chat.
Json PromptList();
inline constexpr const char* kChatPrompt = "chat";

}  // namespace reprise::mcp_door
