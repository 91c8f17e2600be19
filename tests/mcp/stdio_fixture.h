#pragma once

#include <memory>
#include <string>
#include <utility>

#include "mcp/client.h"
#include "mcp/server_launch.h"
#include "mcp/session.h"
#include "net/curl_transport.h"
#include "support/source_directory.h"
#include "support/temp_directory.h"
#include "support/test.h"

namespace reprise {

inline McpServerOptions ScriptedStdioServer(const std::string& mode, const std::string& argument = "") {
  McpServerOptions options;
  options.name = "scripted";
  options.command = "/usr/bin/python3";
  options.arguments = {SourceDirectory() + "/tests/mcp/scripted_server.py", mode, argument};
  return options;
}

// A session with the scripted server over stdio.
class StdioSession {
 public:
  explicit StdioSession(const McpServerOptions& options, SessionHooks hooks = {}) {
    auto channel = OpenServerChannel(options, transport_, directory_.path(), "");
    REQUIRE(channel.has_value());
    session_ = std::make_unique<Session>(*std::move(channel), std::move(hooks));
  }
  explicit StdioSession(const std::string& mode, SessionHooks hooks = {})
      : StdioSession(ScriptedStdioServer(mode), std::move(hooks)) {}

  StdioSession& Greeted() {
    const auto facts = Initialize(*session_, "1", Limits());
    INFO((facts ? "" : facts.error().message));
    REQUIRE(facts.has_value());
    return *this;
  }
  Result<ToolOutcome> Call(const std::string& tool, const std::string& arguments = "{}",
                           const RequestOptions& options = Limits()) {
    return CallTool(*session_, tool, arguments, options);
  }

  // Far more than any test needs.
  static RequestOptions Limits() { return {.timeout = std::chrono::seconds(30)}; }
  Session& session() { return *session_; }
  const std::string& directory() const { return directory_.path(); }

 private:
  CurlTransport transport_;
  TempDirectory directory_;
  std::unique_ptr<Session> session_;
};

}  // namespace reprise
