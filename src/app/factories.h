#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "approval/rules.h"
#include "people/authenticator.h"
#include "reprise/audio.h"
#include "reprise/engine.h"
#include "reprise/factories.h"
#include "reprise/file_system.h"
#include "reprise/model_client.h"
#include "reprise/options.h"
#include "reprise/transport.h"
#include "tools/tool_catalog.h"

namespace reprise {

class SandboxedReader;

// The names of the configured MCP servers, and the configured rules; null if there are none.
std::vector<std::string> NamesOfServers(const Options& options);
ToolRules RulesOf(const Options& options);

// What an engine gets of these options. `path`: of the folder.
EngineOptions EngineOptionsOf(const Options& options, const std::string& path);

// How the built-in tools work with these options. `transport` must outlive them; `readable_folders`: see ToolOptions.
Result<ToolOptions> ToolOptionsOf(const Options& options, Transport& transport, FileSystem& disk,
                                  std::function<std::vector<std::string>()> readable_folders = {});
// Like MakeTools; the tools use `transport` and `disk`, which must outlive them.
Result<std::unique_ptr<ToolCatalog>> MakeToolCatalog(const Options& options, Transport& transport, FileSystem& disk,
                                                     std::vector<std::shared_ptr<Tool>> own,
                                                     std::function<std::vector<std::string>()> readable_folders = {});

// Whether the provider is useless without a key.
bool WantsKey(const ProviderOptions& provider);

// The configured models. `transport` must outlive them.
Result<std::unique_ptr<ModelDirectory>> MakeModelDirectory(Transport& transport, const Options& options);

// Reads documents in a program of its own.
std::unique_ptr<SandboxedReader> MakeDocumentReader(const Options& options);

// The configured transcription and speech. kInvalidArgument (reason "invalid_config") if a provider is missing or of
// another type.
Result<std::unique_ptr<Audio>> MakeAudio(Transport& transport, const Options& options);

// The file of the API tokens: beside the keys, because its writers decide who may use the server.
std::string TokensFileOf(const Options& options);
// The file with the times of their last use.
std::string TokenUsesFileOf(const Options& options);

// The configured tokens, for commands; in the database if there is one. kInvalidArgument if the database's URL is
// invalid, kConflict if it has other tables.
Result<std::shared_ptr<ApiTokenStore>> OpenTokens(const Options& options);
// Null for a single user. `transport` must outlive it.
std::shared_ptr<Authenticator> MakeAuthenticator(const Options& options, Transport& transport,
                                                 std::shared_ptr<ApiTokenStore> tokens);

}  // namespace reprise
