#include "cli/serve_command.h"

#include <unistd.h>

#include <optional>
#include <string>

#include "base/logging.h"
#include "base/memory_reserve.h"
#include "cli/console.h"
#include "cli/embedded.h"
#include "cli/private_file.h"
#include "cli/process.h"
#include "cli/provider_checks.h"
#include "cli/server_parts.h"
#include "cli/trust.h"
#include "cli/unknown_variables.h"
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
  for (const std::string& text : options.public_hosts) {
    auto host = ParsePublicHost(text);
    if (!host) return Fail(std::move(host.error()));
    server.public_hosts.push_back(*std::move(host));
  }
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

int Serve(const Options& options, bool new_key, StopSignals& signals, ProviderCheck& providers) {
  auto server_options = ServerOptionsFrom(options);
  if (!server_options) return Complain(server_options.error());
  const std::string host = server_options->host;
  auto parts = ServerParts::Assemble(options, new_key);
  if (!parts) return Complain(parts.error());
  server_options->ready = [&parts = **parts] { return parts.CheckReady(); };
  auto server = HttpServer::Open((*parts)->engine(), *std::move(server_options));
  if (!server) {
    Error error = server.error();
    error.message = Url(host, options.port) + ": " + error.message;
    return Complain(error);
  }

  LogInfo("ready", {{"version", std::string(Version())},
                    {"model", options.model},
                    {"config", options.config_file},
                    {"sealed", options.plain ? "no" : "yes"}});
  Print("reprise listening on " + Url(host, (*server)->port()) + "\n");
  if (!FlushOutput()) LogWarning("nobody reads the standard output");

  providers.Begin();
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
  MemoryReserve::Install();
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  // Before anything is created; and before signals are held back, as a person may be asked.
  const auto files = FilesToTrust(*options);
  if (!files && files.error().code == ErrorCode::kInvalidArgument) return Misused(files.error().message);
  if (!files) return Complain(files.error());
  if (auto trusted = RequireTrust(*options, *files); !trusted) return Complain(trusted.error());
  StopSignals signals;
  SetLogLevel(LevelOf(options->log_level));
  for (const std::string& unknown : UnknownVariables(environ)) LogWarning(unknown);
  ProviderCheck providers(*options);
  return Serve(*options, line.new_key, signals, providers);
}

}  // namespace reprise
