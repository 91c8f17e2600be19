#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "mcp/channel.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/session.h"
#include "process/supervised_process.h"
#include "reprise/options.h"
#include "reprise/result.h"
#include "reprise/transport.h"

namespace reprise {

// The command of a configured server: its program from PATH, run in `directory` (or the configured `cwd`), with only
// PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TERM, TZ and TMPDIR of this process and the configured variables.
// PATH loses relative folders and those in `workspace`, because others may write there. kNotFound if there is no such
// program, or no folder `cwd`.
Result<Command> ServerCommand(const McpServerOptions& options, const std::string& directory,
                              const std::string& workspace);

// True for programs that run their first file argument: "node", "python3.11".
bool IsInterpreter(const std::string& program);

// True for those that can also run a folder (its __main__.py, index.js, package.json).
bool RunsFolders(const std::string& program);

// True for a file that holds no code, judged by its name: a database, a table, a text, a picture, a log.
bool IsDataFile(const std::filesystem::path& file);

// A digest of the launch that a user agrees to: the address, or the command with its arguments and variables; the path
// and content of its program and of an interpreter's script; the same for arguments that are files in the workspace,
// except data (IsDataFile); and the roots. Leaves out headers, because the tokens in them change. Fails like
// ServerCommand, or if a file cannot be read.
Result<std::string> LaunchDigest(const McpServerOptions& options, const std::string& directory,
                                 const std::string& workspace);

// A private folder (0700, an unpredictable name) for a server to start in. Programs load files from their current
// folder, so no one else may put files there. It holds an empty package.json, which ends npm's search for packages in
// the folders above. The destructor removes it with its content; links are not followed.
class ServerFolder {
 public:
  // Makes the folder in `parent`, which must exist and be private.
  static Result<ServerFolder> Make(const std::string& parent, const std::string& name);
  ServerFolder(ServerFolder&& other) noexcept;
  ServerFolder& operator=(ServerFolder&&) = delete;
  ~ServerFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ServerFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

// Provides the tokens for a configured server with log-in; null for other servers. `browser` may be empty.
std::shared_ptr<HttpAuthorizer> AuthorizerFor(const McpServerOptions& options, Transport& transport,
                                              OAuthCredentials& credentials, std::string redirect_uri,
                                              OAuthBrowser browser);

// The folders that a configured server is told to work in (the workspace by default).
std::vector<SessionRoot> RootsFor(const McpServerOptions& options, const std::string& workspace);

// Starts the command of a configured server (in `directory` or the configured folder; see ServerCommand), or prepares
// the connection to it. `transport` must outlive the channel.
Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace,
                                                   std::shared_ptr<HttpAuthorizer> authorizer = nullptr);

}  // namespace reprise
