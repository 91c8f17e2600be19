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

// How a configured server is run: its program looked up in PATH, in `directory` (or the configured `cwd`), with PATH,
// HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TERM, TZ and TMPDIR of this process and the configured variables, and
// nothing else. PATH is without relative folders and those in `workspace`: others write there. kNotFound if there is no
// such program, or no folder `cwd`.
Result<Command> ServerCommand(const McpServerOptions& options, const std::string& directory,
                              const std::string& workspace);

// True of programs that run what their first file argument holds: "node", "python3.11".
bool IsInterpreter(const std::string& program);

// True of those that run a folder too (its __main__.py, index.js, package.json).
bool RunsFolders(const std::string& program);

// True of a file that by its name holds no code: a database, a table, a text, a picture, a log.
bool IsDataFile(const std::filesystem::path& file);

// What a person agrees to of how a server is run or reached: the command with its arguments and variables or the
// address, the program that is found for it and what that file holds; likewise the file that an interpreter is given,
// and every argument that is a file in the workspace, but for data (IsDataFile). Changes when one of them does. Headers
// are left out, as tokens in them change by themselves. Fails as ServerCommand does, or if a file cannot be read.
Result<std::string> LaunchDigest(const McpServerOptions& options, const std::string& directory,
                                 const std::string& workspace);

// A folder of its own (0700, a name that nobody knows before) for a server to start in: programs look there for what
// they load, so nobody else may have put anything there. It holds a package.json without anything in it, at which npm
// ends its search for packages in the folders above. Removed with all it holds at the end; links are not followed.
class ServerFolder {
 public:
  // Below `parent`, which is there and private.
  static Result<ServerFolder> Make(const std::string& parent, const std::string& name);
  ServerFolder(ServerFolder&& other) noexcept;
  ServerFolder& operator=(ServerFolder&&) = delete;
  ~ServerFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ServerFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

// Who has the tokens for a configured server, where somebody logs in; null for others. `browser` may be empty.
std::shared_ptr<HttpAuthorizer> AuthorizerFor(const McpServerOptions& options, Transport& transport,
                                              OAuthCredentials& credentials, std::string redirect_uri,
                                              OAuthBrowser browser);

// The folders that a configured server is told to work in.
std::vector<SessionRoot> RootsFor(const McpServerOptions& options, const std::string& workspace);

// Starts the command (in `directory`, or where the configuration says; see ServerCommand) or prepares the connection of
// a configured server. `transport` must outlive the channel.
Result<std::unique_ptr<Channel>> OpenServerChannel(const McpServerOptions& options, Transport& transport,
                                                   const std::string& directory, const std::string& workspace,
                                                   std::shared_ptr<HttpAuthorizer> authorizer = nullptr);

}  // namespace reprise
