#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "reprise/error.h"

// The errors of JSON-RPC and ACP.
namespace reprise::rpc {

inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601, kInvalidParams = -32602,
                     kInternalError = -32603, kAuthRequired = -32000, kResourceNotFound = -32002,
                     kRequestCancelled = -32800;

// `reason` goes into "data", for programs.
Json ErrorObject(int code, const std::string& message, const std::string& reason = {});

// The server's message with the matching code of ACP.
Json ErrorObject(const Error& error);

}  // namespace reprise::rpc
