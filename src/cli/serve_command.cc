#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include "app/checks.h"
#include "app/embedded.h"
#include "app/options.h"
#include "app/process.h"
#include "app/server_parts.h"
#include "app/settings.h"
#include "app/trust.h"
#include "base/logging.h"
#include "base/system.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/own_server.h"
#include "doors/api/server.h"
#include "terminal/console.h"

namespace reprise {
namespace {

LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

// Called after the log file was rotated, and so renamed.
void ReopenLogFile(const std::string& path) {
  if (auto opened = LogToFile(path); !opened) {
    return LogError("the log file cannot be opened again; the log goes on in the old one",
                    {{"error", opened.error().message}});
  }
  LogInfo("the log file was opened again");
}

constexpr std::chrono::minutes kUsualDrain{3};

Error Draining() { return Refused(Reason::kStopping, "the server is stopping, and takes nothing new"); }

Exited Serve(const Options& options, const CommandLine& line, StopSignals& signals, ProviderCheck& providers,
             ServiceManager& manager) {
  auto server_options = TRY(HttpOptionsFrom(options));
  const std::string wanted = manager.sockets.empty() ? UrlOf(server_options.host, options.port) + ": " : "";
  auto parts = TRY(ServerParts::Assemble(options, {}, line.new_key));
  std::atomic<bool> is_draining = false;
  server_options.ready = [&parts = *parts, &is_draining]() -> Result<void> {
    if (is_draining) return Fail(Draining());
    return parts.CheckReady();
  };
  if (line.until_released >= 0) {
    server_options.is_left = [held = line.until_released] {
      pollfd other_end{held, 0, 0};
      return ::poll(&other_end, 1, 0) == 1;
    };
  }
  auto server = parts->Listen(std::move(server_options), std::move(manager.sockets));
  if (!server) {
    Error error = server.error();
    error.message = wanted + error.message;
    return Complain(error);
  }

  for (const std::string& note : NotesOf(options, ProcessEnvironment())) LogWarning(note, {});
  LogInfo("ready", {{"version", std::string(Version())},
                    {"model", options.model},
                    {"config", options.config_file},
                    {"folder_config", options.folder_file},
                    {"sealed", options.plain ? "no" : "yes"}});
  Print("reprise listening on " + UrlOf((*server)->host(), (*server)->port()) + "\n");
  if (!FlushOutput()) LogWarning("nobody reads the standard output");
  manager.Tell("READY=1");
  std::optional<ReleaseWatch> watch;
  if (line.until_released >= 0) {
    ::setsid();  // keeps the terminal's Ctrl-C and Ctrl-Z, which are for the client, from this process
    // Runs that wait for an answer do not keep the server, because they are stored.
    watch.emplace(line.until_released, [&] {
      const Engine::Counters counters = parts->engine().counters();
      return counters.active_runs <= counters.waiting_runs && (*server)->CloseIfUnused();
    });
  }

  providers.Begin();
  signals.Wait();
  watch.reset();
  LogInfo("stopping");
  manager.Tell("STOPPING=1");
  // Meanwhile CheckReady makes load balancers send no new requests, and streams go on.
  const bool has_database = options.store.type == StoreOptions::Type::kPostgres;
  is_draining = true;
  parts->engine().Drain(options.drain.value_or(has_database ? kUsualDrain : std::chrono::milliseconds(0)));
  parts->Stop(server->get());
  LogInfo("stopped");
  return kExitOk;
}

}  // namespace

Exited RunServe(const CommandLine& line, const Environment& environment) {
  // The name in lists of processes, which after a start as /proc/self/exe (OwnServer) is "exe". Threads inherit it.
  if (line.until_released >= 0) ::prctl(PR_SET_NAME, "reprise");
  PrepareProcess();
  MemoryReserve::Install();
  auto manager = TRY(ServiceManager::FromEnvironment());
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  // Before anything is created, and before signals are blocked, because a person may be asked.
  const auto files = FilesToTrust(options);
  if (!files && files.error().code == ErrorCode::kInvalidArgument) return Misused(files.error().message);
  if (!files) return Complain(files.error());
  TRY(RequireTrust(options, *files));
  const std::string& log_file = options.log_file;
  StopSignals signals(log_file.empty() ? std::function<void()>() : [&log_file] { ReopenLogFile(log_file); });
  SetLogLevel(LevelOf(options.log_level));
  SetLogFormat(options.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  if (!log_file.empty()) {
    TRY(LogToFile(log_file));
  }
  for (const std::string& unknown : UnknownVariables(environ)) LogWarning(unknown);
  try {
    ProviderCheck providers(options);
    return Serve(options, line, signals, providers, manager);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return Complain(MakeError(ErrorCode::kUnavailable,
                              "the system has no thread left for the server: raise the limit of processes (ulimit -u, "
                              "TasksMax of systemd) or of memory (ulimit -v)"));
  }
}

}  // namespace reprise
