#include "tools/shell/command_runner.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/logging.h"
#include "base/path.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "process/child_loop.h"
#include "tools/builtin_tools.h"
#include "tools/text_file.h"

namespace reprise {

OutputCapture::OutputCapture(std::size_t max_bytes, std::function<void(std::string_view)> on_output)
    : max_head_(max_bytes / 2),
      max_tail_(max_bytes - max_bytes / 2),
      max_streamed_(max_bytes),
      on_output_(std::move(on_output)) {}

void OutputCapture::Add(std::string_view bytes) {
  total_ += bytes.size();
  if (on_output_) Stream(bytes);
  const std::size_t for_head = std::min(bytes.size(), max_head_ - head_.size());
  head_ += bytes.substr(0, for_head);
  tail_ += bytes.substr(for_head);
  // Cut rarely, so that each byte is moved once on average.
  if (tail_.size() > 2 * max_tail_) tail_.erase(0, tail_.size() - max_tail_);
}

void OutputCapture::Stream(std::string_view bytes) {
  const std::size_t room = max_streamed_ - streamed_;
  if (room == 0) return;
  streamed_ += std::min(room, bytes.size());
  held_back_ += bytes.substr(0, room);
  const std::size_t whole = held_back_.size() - IncompleteUtf8Tail(held_back_);
  if (whole > 0) on_output_(ToValidUtf8(std::string_view(held_back_).substr(0, whole)));
  held_back_.erase(0, whole);
}

std::string OutputCapture::Finish() {
  // Bytes held back in mid-stream are dropped; at the true end they are a broken character and shown as one.
  if (!held_back_.empty() && streamed_ == total_) on_output_(ToValidUtf8(held_back_));
  held_back_.clear();
  if (tail_.size() > max_tail_) tail_.erase(0, tail_.size() - max_tail_);
  const std::uint64_t cut = total_ - head_.size() - tail_.size();
  if (cut == 0) return ToValidUtf8(head_ + tail_);
  const std::string_view head = std::string_view(head_).substr(0, head_.size() - IncompleteUtf8Tail(head_));
  return ToValidUtf8(head) + "\n(... " + std::to_string(cut) + " bytes cut ...)\n" + ToValidUtf8(FromUtf8Start(tail_));
}

namespace {

// A sanitizer maps terabytes of addresses, so this program cannot be the first in the sandbox under a limit of memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

using std::chrono::milliseconds;

// How long killed processes may take to vanish (one may hang in the kernel, on a dead network disk, say).
constexpr std::chrono::seconds kMaxDying{5};
// How long the supervisor may take to end.
constexpr std::chrono::seconds kMaxEnding{1};

// Runs a command to its end on the caller's thread. Kills a cancelled command at once.
class CommandRun final : private StopEvent, private ChildLoop {
 public:
  CommandRun(SupervisedProcess process, const CommandLimits& limits, const std::stop_token& stop,
             std::function<void(std::string_view)> on_output, std::string_view input = {})
      : StopEvent(stop),
        ChildLoop(std::move(process), fd(), {.terminated = limits.grace, .killed = kMaxEnding, .forced = kMaxDying}),
        input_(input),
        on_bytes_(limits.on_bytes),
        waited_(limits.waited),
        capture_(limits.max_output_bytes, std::move(on_output)) {
    EndAfter(limits.timeout);
  }

  Result<CommandResult> Finish() {
    const bool left_behind = !Run();
    if (left_behind) LogError("processes of a command do not die", {});
    if (const auto error = process().start_error()) return Fail(*error);
    CommandResult result{
        .end = end_.value_or(CommandResult::End::kExited), .output = capture_.Finish(), .left_behind = left_behind};
    // Without a status, the supervisor itself was killed.
    const int status = process().status().value_or(SIGKILL);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    if (!end_ && !WIFEXITED(status)) result.end = CommandResult::End::kSignalled;
    return result;
  }

 private:
  void OnWake() override {
    if (ending() >= Ending::kKilled) return;
    end_ = CommandResult::End::kCancelled;
    End(Ending::kKilled);
  }
  void OnDeadline() override {
    if (ending() != Ending::kNot) return ChildLoop::OnDeadline();
    const milliseconds waited = waited_ ? waited_() : milliseconds(0);
    if (waited > granted_) return EndAfter(waited - std::exchange(granted_, waited));
    end_ = CommandResult::End::kTimedOut;
    End(Ending::kTerminated);
  }
  void OnOutput(std::string_view bytes) override {
    capture_.Add(bytes);
    if (on_bytes_) on_bytes_(bytes);
  }
  std::string_view Unsent() const override { return input_; }
  void Sent(std::size_t bytes) override {
    input_.remove_prefix(bytes);
    if (input_.empty()) process().CloseInput();
  }

  std::string_view input_;  // the rest to write
  const std::function<void(std::string_view)> on_bytes_;
  const std::function<milliseconds()> waited_;
  milliseconds granted_{};  // the part of the time waited that has been added
  OutputCapture capture_;
  std::optional<CommandResult::End> end_;  // set if we ended it
};

}  // namespace

Result<CommandResult> RunCommand(const Command& command, const CommandLimits& limits, std::stop_token stop,
                                 std::function<void(std::string_view)> on_output) {
  auto process = TRY(SupervisedProcess::Start(command));
  if (limits.on_start) limits.on_start(process.supervisor());
  return CommandRun(std::move(process), limits, stop, std::move(on_output)).Finish();
}

Result<CommandResult> RunCommandOn(std::string_view input, const Command& command, const CommandLimits& limits,
                                   std::stop_token stop) {
  auto process = TRY(SupervisedProcess::Start(command, SupervisedProcess::Streams::kSeparate));
  return CommandRun(std::move(process), limits, stop, {}, input).Finish();
}

namespace {

std::string Inherited(const char* name, std::string otherwise) {
  return ProcessEnvironment()(name).value_or(std::move(otherwise));
}

// The part of the server's environment for commands, without possible secrets.
std::vector<std::string> CleanEnvironment(const ShellOptions& options, const std::string& path) {
  std::vector<std::string> environment = {
      "PATH=" + path,
      "SHELL=/bin/sh",
      "TERM=dumb",
      "LANG=" + Inherited("LANG", "C.UTF-8"),
  };
  for (const char* name : {"USER", "LOGNAME", "TZ"}) {
    if (const std::string value = Inherited(name, ""); !value.empty()) environment.push_back(name + ("=" + value));
  }
  for (const auto& [name, value] : options.extra_environment) environment.push_back(name + "=" + value);
  return environment;
}

Sandbox::Options SandboxOptions(const Workspace& workspace, const std::vector<std::string>& secret_paths,
                                const ShellOptions& options) {
  Sandbox::Options sandbox{.use = options.sandbox,
                           .workspace = workspace.directory(),
                           .home = Inherited("HOME", ""),
                           .hidden_paths = workspace.protected_paths(),
                           .readable_paths = options.readable_paths,
                           .writable_paths = options.writable_paths,
                           .limits = options.limits};
  const std::string inside = workspace.directory() + "/";
  for (const std::string& secret : secret_paths) {
    // Do not hide a secret path that contains the workspace, because a person has chosen to work there.
    if (!inside.starts_with(secret + "/")) sandbox.hidden_paths.push_back(secret);
  }
  return sandbox;
}

// The paths of `missing` that exist now, on one line; empty if there are none.
std::string Appeared(const std::vector<std::string>& missing, const std::string& workspace) {
  std::string list;
  for (const std::string& path : missing) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) continue;
    const bool inside = path.starts_with(workspace + "/");
    list.append(list.empty() ? "" : ", ").append(QuotedPath(inside ? path.substr(workspace.size() + 1) : path));
  }
  return list;
}

std::string InSeconds(milliseconds time) {
  constexpr int kPerSecond = 1000;
  return time.count() % kPerSecond == 0 ? std::to_string(time.count() / kPerSecond) + " s"
                                        : std::to_string(time.count()) + " ms";
}

// For the model and people; empty if a whole sandbox confines the command.
std::string NoteOn(const Sandbox::State& sandbox, bool outside) {
  if (outside) return "(outside the sandbox, as the user has allowed for this one call)";
  if (!sandbox.available) return "(no sandbox on this machine: " + sandbox.missing + ")";
  return sandbox.missing.empty() ? "" : "(the sandbox on this machine lacks " + sandbox.missing + ")";
}

ToolOutcome Outcome(const CommandResult& result, milliseconds timeout, const std::string& note,
                    const std::string& appeared, const std::vector<std::string>& refused) {
  const std::string ended =
      result.left_behind ? ", but not all that it had started could be ended" : ", with all it had started";
  std::string text = result.output;
  const auto add_line = [&text](const std::string& line) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += line;
  };
  bool failed = true;
  switch (result.end) {
    case CommandResult::End::kExited:
      failed = result.status != 0;
      if (failed) add_line("(exit status " + std::to_string(result.status) + ")");
      break;
    case CommandResult::End::kSignalled:
      add_line("(ended by signal " + std::to_string(result.status) + ")");
      break;
    case CommandResult::End::kTimedOut:
      add_line("(timed out after " + InSeconds(timeout) + " and was ended" + ended + ")");
      break;
    case CommandResult::End::kCancelled:
      add_line("(cancelled" + ended + ")");
      break;
  }
  if (result.left_behind && result.end < CommandResult::End::kTimedOut) {
    add_line("(not all that it had started could be ended)");
  }
  if (text.empty()) text = "(no output)";
  if (!appeared.empty()) add_line(appeared);
  for (const std::string& each : refused) add_line("(the network refused " + each + ")");
  if (!note.empty()) add_line(note);
  ToolOutcome outcome{.output = std::move(text), .is_error = failed};
  if (result.end == CommandResult::End::kExited) outcome.exit_status = result.status;
  return outcome;
}

// Tells programs of the relay. Their own servers at localhost are reached without it.
void AddProxies(std::vector<std::string>& environment) {
  const std::string place = "127.0.0.1:" + std::to_string(NetworkRelay::kProxyPort);
  for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}) {
    environment.push_back(name + ("=http://" + place));
  }
  for (const char* name : {"ALL_PROXY", "all_proxy"}) environment.push_back(name + ("=socks5h://" + place));
  for (const char* name : {"NO_PROXY", "no_proxy"})
    environment.emplace_back(name + std::string("=localhost,127.0.0.1,::1"));
}

std::shared_ptr<const NetworkRelay::Options> NetworkOf(const NetworkRules& rules) {
  std::vector<std::string> allow = rules.allow;
  allow.insert(allow.end(), rules.unasked.begin(), rules.unasked.end());
  NetworkRelay::Options options;
  if (auto parsed = HostRules::Parse(allow, rules.deny)) {
    options.rules = *std::move(parsed);
  } else {
    LogError("commands have no network", {{"reason", parsed.error().message}});
  }
  for (const std::string& text : rules.closed) {
    if (auto endpoint = ParseHostPort(text, 0)) options.closed.push_back(*std::move(endpoint));
  }
  return std::make_shared<const NetworkRelay::Options>(std::move(options));
}

}  // namespace

CommandRunner::CommandRunner(const Workspace& workspace, const std::vector<std::string>& secret_paths,
                             ShellOptions options)
    : workspace_(workspace),
      options_(std::move(options)),
      path_(Inherited("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")),
      environment_(CleanEnvironment(options_, path_)),
      sandbox_(SandboxOptions(workspace, secret_paths, options_)),
      git_(GitConfiguration::OfThisUser(workspace.directory())),
      network_(NetworkOf(options_.network)) {}

// What is needed to run a job, without a reference to the workspace.
struct CommandRunner::Prepared {
  Command command;
  std::string note;                  // NoteOn
  std::vector<std::string> missing;  // of the hidden paths
  std::string workspace;
  std::shared_ptr<const UniqueFd> program;  // this one, which opens the relay's listeners
  std::shared_ptr<NetworkRelay> relay{};    // null: the command has no network
  // Of a job; null: it is in no sandbox, in one, or no job.
  std::shared_ptr<SandboxPorts> inner_ports{};
  std::shared_ptr<MachinePorts> outer_ports{};

  Result<CommandResult> Run(CommandLimits limits, const std::stop_token& stop, const NetworkRelay::Ask& ask = {},
                            const std::function<void(std::string_view)>& on_output = {}) const {
    limits.on_start = [&](pid_t supervisor) {
      if (relay) relay->Begin(stop, ask);
      if (inner_ports) inner_ports->network().ForgetInner();
      if (outer_ports) outer_ports->Begin(supervisor);
    };
    if (relay) {
      limits.waited = [this] { return relay->waited(); };
    }
    return RunCommand(command, limits, stop, on_output);
  }
  // Ends the network, and returns the hosts that it refused.
  std::vector<std::string> EndNetwork(const std::function<void(const NetworkUse&)>& note) const {
    if (!relay) return {};
    NetworkRelay::Report report = relay->Finish();
    for (const NetworkUse& use : report.uses) {
      if (note) note(use);
    }
    return std::move(report.refused);
  }
  // Tells the model which of `missing` exist now; empty if there are none.
  std::string AppearedNow() const {
    const std::string appeared = Appeared(missing, workspace);
    if (appeared.empty()) return {};
    LogWarning("a command has made a file that others obey or keep secret", {{"path", appeared}});
    return "(it made " + appeared +
           ", where Reprise or other programs look for what they obey or keep secret: tell the user, who should look "
           "at it)";
  }
};

Result<CommandRunner::Prepared> CommandRunner::Prepare(const Job& job, bool outside, bool in_background) const {
  // Report this plainly instead of with bubblewrap's message.
  const auto folder = workspace_.OpenRoot();
  if (!folder) return Fail(folder.error().code, "cannot run the command: " + folder.error().message);
  struct stat status {};
  if (::fstat(folder->get(), &status) != 0) return Fail(WorkspaceError(errno));
  constexpr std::uint64_t kMegabyte = 1024 * 1024;
  const Sandbox::State sandbox = sandbox_.state();
  const bool sandboxed = sandbox.available && !outside;
  if (!sandboxed && options_.sandbox == SandboxUse::kAlways) {
    return Fail(ErrorCode::kUnavailable, "not run: this command may run in a sandbox only, and there is none here" +
                                             (sandbox.missing.empty() ? "" : " (" + sandbox.missing + ")"));
  }
  FoundRunByOthers found = sandbox_.Look();
  Prepared prepared{.command = {.argv = job.argv,
                                .environment = environment_,
                                .directory = workspace_.directory(),
                                .input = job.input,
                                .memory_bytes = options_.limits.memory_mb * kMegabyte,
                                .file_bytes = options_.limits.file_size_mb * kMegabyte,
                                .confined = true},
                    .note = NoteOn(sandbox, outside),
                    .missing = std::move(found.missing),
                    .workspace = workspace_.directory(),
                    .program = std::make_shared<const UniqueFd>(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC))};
  Command& command = prepared.command;
  if (sandboxed) {
    SandboxGifts gifts{.git_configuration = git_.Text(),
                       .workspace_id = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino),
                       .found = &found};
    if (!options_.network.is_empty() && prepared.program->get() >= 0) {
      prepared.relay = std::make_shared<NetworkRelay>(network_);
      gifts.listeners_socket = prepared.relay->inner_socket();
      gifts.ports = prepared.relay->ports();
      AddProxies(command.environment);
    }
    if (in_background && (!kIsSanitized || command.memory_bytes == 0)) {
      prepared.inner_ports = std::make_shared<SandboxPorts>(options_.own_host, gifts.ports);
      gifts.ways_in_socket = prepared.inner_ports->network().inner_socket();
    }
    if (prepared.program->get() < 0) gifts.ways_in_socket = -1;
    gifts.program = prepared.program->get();
    command = sandbox_.Confined(std::move(command), gifts);
  } else if (in_background) {
    prepared.outer_ports = std::make_shared<MachinePorts>(options_.own_host);
  }
  command.environment.insert(command.environment.end(), job.environment.begin(), job.environment.end());
  // Not the user's own home, where programs would read tokens and leave files, unless a person wants just that.
  const std::string& home = workspace_.directory();
  command.environment.push_back("HOME=" + (sandboxed ? sandbox_.home() : outside ? Inherited("HOME", home) : home));
  return prepared;
}

ToolOutcome CommandRunner::Run(const Job& job, const ToolContext& context) const {
  const auto prepared = Prepare(job, context.outside_sandbox, /*in_background=*/false);
  if (!prepared) return ToolFailure(prepared.error().message);
  CommandLimits limits{.timeout = std::min<milliseconds>({job.timeout, options_.max_timeout, context.timeout})};
  const auto keeper = context.keep_output ? context.keep_output() : nullptr;
  if (keeper) limits.on_bytes = [&keeper](std::string_view bytes) { keeper->Add(bytes); };
  const NetworkRelay::Ask ask = options_.network.ask ? context.may_reach : nullptr;
  const auto result = prepared->Run(limits, context.stop, ask, context.on_output);
  const std::vector<std::string> refused = prepared->EndNetwork(context.note_network);
  if (!result) return ToolFailure(result.error().message);
  ToolOutcome outcome = Outcome(*result, limits.timeout, prepared->note, prepared->AppearedNow(), refused);
  const std::string kept = keeper ? keeper->Finish() : std::string();
  if (!kept.empty()) outcome.output += (outcome.output.ends_with('\n') ? "" : "\n") + kept;
  return outcome;
}

namespace {

JobEnd EndOf(const Result<CommandResult>& result) {
  if (!result) return {.reason = "failed", .message = result.error().message};
  switch (result->end) {
    case CommandResult::End::kExited:
      return {.reason = "exited", .status = result->status};
    case CommandResult::End::kSignalled:
      return {.reason = "signalled", .status = result->status};
    case CommandResult::End::kTimedOut:
      return {.reason = "timed_out"};
    case CommandResult::End::kCancelled:
      break;
  }
  return {.reason = "stopped"};
}

}  // namespace

ToolOutcome CommandRunner::RunInBackground(const Job& job, std::string command, const ToolContext& context) const {
  if (context.jobs == nullptr) return ToolFailure("commands cannot run in the background here");
  auto prepared = Prepare(job, context.outside_sandbox, /*in_background=*/true);
  if (!prepared) return ToolFailure(prepared.error().message);
  const std::string confinement = prepared->note;
  std::shared_ptr<JobPorts> ports = prepared->inner_ports;
  if (!ports) ports = prepared->outer_ports;
  auto main = [prepared = *std::move(prepared), timeout = job.timeout, note = context.note_network](
                  const std::stop_token& stop, const std::function<void(std::string_view)>& on_bytes) {
    const CommandLimits limits{.timeout = timeout, .max_output_bytes = 0, .on_bytes = on_bytes};
    const auto end_ports = [&prepared](bool in_peace) {
      if (prepared.inner_ports) prepared.inner_ports->End(in_peace);
      if (prepared.outer_ports) prepared.outer_ports->End();
    };
    const auto result = [&] {
      try {
        return prepared.Run(limits, stop);
      } catch (...) {
        end_ports(/*in_peace=*/false);
        throw;
      }
    }();
    end_ports(/*in_peace=*/!stop.stop_requested());
    for (const std::string& refused : prepared.EndNetwork(note)) on_bytes("\n(the network refused " + refused + ")\n");
    if (const std::string appeared = prepared.AppearedNow(); !appeared.empty()) on_bytes("\n" + appeared + "\n");
    if (result && result->left_behind) on_bytes("\n(not all that it had started could be ended)\n");
    return EndOf(result);
  };
  const auto started = context.jobs->Start(std::move(command), std::move(main), std::move(ports));
  if (!started) return ToolFailure("not started: " + started.error().message);
  ToolOutcome outcome{.output = "The background job " + started->id +
                                " runs. read_job returns its output and state, stop_job ends it."};
  if (!confinement.empty()) outcome.output += "\n" + confinement;
  outcome.job = StartedJob{started->id, started->command};
  return outcome;
}

std::string CommandRunner::Find(std::string_view program) const {
  const bool sandboxed = sandbox_.available();
  for (std::string_view rest = path_; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, end)) + "/" + std::string(program);
    if (candidate.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0 &&
        (!sandboxed || sandbox_.Shows(candidate))) {
      return candidate;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

bool CommandRunner::FindsAmongFiles(const std::string& program) const {
  std::vector<std::filesystem::path> changed{workspace_.directory()};
  for (const std::string& path : options_.writable_paths) changed.push_back(Resolved(path));
  const bool sandboxed = sandbox_.available();
  for (const std::filesystem::path& folder : SearchFolders(path_)) {
    if (folder.is_relative()) return true;
    const std::filesystem::path candidate = folder / program;
    const bool is_changed = std::ranges::any_of(changed, [&](const auto& each) { return LeadsInto(candidate, each); });
    struct stat status {};
    const bool is_program =
        ::stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(candidate.c_str(), X_OK) == 0;
    if (is_changed && is_program) return true;
    // The sandbox skips a program that it does not show and runs the next one.
    if (is_program &&
        (!sandboxed || (sandbox_.Shows(candidate.string()) && sandbox_.Shows(Resolved(candidate).string())))) {
      return false;
    }
  }
  return false;
}

}  // namespace reprise
