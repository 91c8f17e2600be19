#include "cli/serve_command.h"

#include <optional>
#include <string>

#include "base/logging.h"
#include "cli/console.h"
#include "cli/embedded.h"
#include "cli/hook_files.h"
#include "cli/private_file.h"
#include "cli/process.h"
#include "cli/server_parts.h"
#include "http/server.h"

namespace reprise {
namespace {

LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

Result<ServerOptions> ServerOptionsFrom(const Options& options) {
  ServerOptions server;
  server.host = options.host == "localhost" ? "127.0.0.1" : options.host;
  server.port = options.port;
  server.openapi = OpenApiDocument();
  server.limits.file_bytes = options.files.file_bytes;
  if (!options.token_file.empty()) {
    auto token = ReadToken(options.token_file);
    if (!token) return Fail(token.error());
    server.token = *std::move(token);
  }
  return server;
}

std::string Url(const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

int Serve(const Options& options, StopSignals& signals) {
  auto server_options = ServerOptionsFrom(options);
  if (!server_options) return Complain(server_options.error());
  const std::string host = server_options->host;
  auto parts = ServerParts::Assemble(options);
  if (!parts) return Complain(parts.error());
  auto server = HttpServer::Open((*parts)->engine(), *std::move(server_options));
  if (!server) return Complain(server.error());

  LogInfo("ready", {{"version", std::string(Version())},
                    {"model", options.model},
                    {"config", options.config_file},
                    {"sealed", options.plain ? "no" : "yes"}});
  Print("reprise listening on " + Url(host, (*server)->port()) + "\n");
  if (!FlushOutput()) LogWarning("nobody reads the standard output");

  ReleaseStartUpMemory();
  signals.Wait();
  LogInfo("stopping");
  // In this order every stream still gets its last event: no new work, then the runs' ends, then the connections.
  (*server)->BeginStop();
  (*parts)->engine().Stop();
  (*server)->Stop();
  LogInfo("stopped");
  return kExitOk;
}

}  // namespace

int RunServe(const CommandLine& line, const Environment& environment) {
  PrepareProcess();
  StopSignals signals;
  const auto options = LoadOptions(line.flags, environment);
  if (!options) {
    Complain(options.error());
    return options.error().code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  // Before anything is created.
  if (const auto files = FilesOfHooks(*options); !files) return Misused(files.error().message);
  SetLogLevel(LevelOf(options->log_level));
  return Serve(*options, signals);
}

}  // namespace reprise
