#include "client/own_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/posix_file_system.h"
#include "base/try.h"
#include "client/server_client.h"
#include "process/supervised_process.h"
#include "store/data_folder.h"
#include "store/file_names.h"

namespace reprise {
namespace {

constexpr std::string_view kListening = "reprise listening on ";
constexpr int kHeldDescriptor = 3;  // number of the descriptor in the server
constexpr std::size_t kMaxComplaint = 4096;
constexpr off_t kLongLog = 4 << 20;
constexpr std::uint64_t kMostSettings = 16 << 20;
constexpr std::size_t kMostNamed = 6;
// A server that is starting or ending holds the folder for a moment. One whose client is gone ends soon, if unused.
constexpr std::chrono::seconds kPatience{10}, kPatienceWithLeft{3};

// The XDG Base Directory Specification says to ignore a relative path.
std::optional<std::string> StateFolder(const Environment& environment) {
  if (const auto state = environment("XDG_STATE_HOME"); state && state->starts_with('/')) return *state + "/reprise";
  if (const auto home = environment("HOME"); home && home->starts_with('/')) return *home + "/.local/state/reprise";
  return std::nullopt;
}

Error CannotStart(const std::string& why) {
  return MakeError(ErrorCode::kUnavailable, "the server could not be started: " + why);
}

// Renames a long log to server.log.1, in place of an older one.
Result<UniqueFd> OpenServerLog(const Environment& environment) {
  const auto folder = StateFolder(environment);
  if (!folder) return Fail(CannotStart("there is no place for its log; set HOME"));
  // For its owner only. If this fails, the log cannot be opened either.
  static_cast<void>(CreateDirectories(Disk(), *folder));
  const std::string path = *folder + "/server.log";
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && status.st_size > kLongLog) ::rename(path.c_str(), (path + ".1").c_str());
  UniqueFd log(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log || ::fchmod(log.get(), 0600) != 0) return Fail(CannotStart("its log cannot be written: " + path));
  return log;
}

// The last line written to the log since `from`, by a server that has ended.
std::string Complaint(int log, off_t from) {
  std::string text(kMaxComplaint, '\0');
  const off_t size = ::lseek(log, 0, SEEK_END);
  const off_t begin = std::max<off_t>(from, size - static_cast<off_t>(text.size()));
  const ssize_t read = ::pread(log, text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
  while (text.ends_with('\n')) text.pop_back();
  constexpr std::string_view kOwnName = "reprise: ";
  const std::size_t line = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  text.erase(0, line);
  if (text.starts_with(kOwnName)) text.erase(0, kOwnName.size());
  return text.empty() ? "it ended without a word" : text;
}

// Both ends of a pipe, which a started program does not inherit by itself.
Result<std::pair<UniqueFd, UniqueFd>> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(CannotStart("no descriptor is left"));
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

std::vector<std::string> CommandOf(const Flags& flags) {
  std::vector<std::string> words{"reprise", "serve"};
  for (const auto& [name, value] : flags) {
    if (name == "port") continue;
    const Setting* const setting = FindSetting(name);
    words.push_back("--" + name);
    if (setting == nullptr || !setting->flag.placeholder.empty()) words.push_back(value);
  }
  words.insert(words.end(), {"--port", "0", "--until-released", std::to_string(kHeldDescriptor)});
  return words;
}

// Starts this program with default signal handling, whatever this process does, and these as its descriptors 1 to 3.
Result<pid_t> Spawn(const std::vector<std::string>& words, int out, int log, int held) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, log, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, held, kHeldDescriptor);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // The running program, even if its file was replaced meanwhile.
  pid_t child = -1;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return Fail(CannotStart("its program could not be run"));
  SupervisedProcess::Spare(child);
  return child;
}

// The first line that the server prints; empty if it ends before that.
std::string FirstLine(int out) {
  std::string line;
  char c = 0;
  for (;;) {
    const ssize_t size = ::read(out, &c, 1);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return {};
    if (c == '\n') return line;
    line += c;
  }
}

// "approval_mode is approve_all there and ask here"
std::string Difference(const std::string& key, const std::string& there, const std::string& here) {
  const auto digest = [](std::string_view value) { return value.find("sha256:"); };
  if (key.starts_with("configuration")) {
    const std::string its = there.substr(0, digest(there)), ours = here.substr(0, digest(here));
    if (its == ours) return "its " + key + " " + its + "was changed after the server started";
    return "its " + key + " is " + (its.empty() ? "none " : its) + "and here " + (ours.empty() ? "none" : ours);
  }
  if (digest(there) == 0 || digest(here) == 0) return key + " is another";
  return key + " is " + (there.empty() ? "none" : there) + " there and " + (here.empty() ? "none" : here) + " here";
}

// Why a client that wants turns to run with `wanted` (SettingsOfAllChats of `options`) cannot use this server:
// kConflict (reason "other_settings"), naming what differs and how to stop the server or do without it.
Error Differs(const RunningServer& server, const TurnSettings& wanted, const Options& options) {
  std::vector<std::string> differences;
  if (auto theirs = NotedSettings(options, /*of_all_chats=*/true); !theirs.empty()) {
    for (const auto& [key, value] : wanted) theirs.try_emplace(key);
    // The usual causes come first.
    std::vector<std::string> keys = {"configuration", "configuration of the folder"};
    for (const auto& [key, value] : theirs) keys.push_back(key);
    for (const std::string& key : keys) {
      const auto there = theirs.extract(key);
      if (there.empty()) continue;
      const auto here = wanted.find(key);
      const std::string ours = here == wanted.end() ? "" : here->second;
      if (there.mapped() != ours) differences.push_back(Difference(key, there.mapped(), ours));
    }
  }
  std::string what = differences.empty() ? "it does not say with which" : "";
  for (std::size_t i = 0; i < std::min(kMostNamed, differences.size()); ++i)
    what += (i == 0 ? "" : "; ") + differences[i];
  if (differences.size() > kMostNamed) what += "; and " + std::to_string(differences.size() - kMostNamed) + " more";
  return Refused(
      Reason::kOtherSettings,
      "a server of these chats runs already, with other settings: " + what + ". " +
          (server.pid.empty() ? "Leave its clients" : "Leave its clients or stop it (kill " + server.pid + ")") +
          ", or take other chats (--data-dir DIR), or work with it as it is (--url " + server.url + ")");
}

// Whether the server takes this client: an error without a reason if so; kOtherSettings if settings differ; otherwise
// the server is ending. Fails if it answers anything else.
Result<Error> AskToJoin(const RunningServer& server, const Options& options) {
  const auto client = TRY(ConnectTo(server, options));
  const auto there = client->Call("GET", "/healthz");
  if (there && !NotedSettings(options).empty()) return Error{};
  if (there) return Refused(Reason::kOtherSettings, {});  // an older version notes none
  const Error& error = there.error();
  const Loss loss = HowLost(error);
  Error named = NotAnswering(error, *client);
  if (loss == Loss::kSilent || (loss == Loss::kNone && !error.Is(Reason::kOtherSettings)))
    return Fail(std::move(named));
  return named;
}

}  // namespace

TurnSettings NotedSettings(const Options& options, bool of_all_chats) {
  TurnSettings settings;
  const auto text = Disk().ReadFile(SettingsFileOf(options), kMostSettings);
  const auto noted = text ? ParseJson(*text) : Fail(text.error());
  if (!noted || !noted->is_object()) return settings;
  const bool is_older = !noted->contains(kOfAllChats);
  for (const auto& [key, value] : (of_all_chats && !is_older ? noted->at(kOfAllChats) : *noted).items()) {
    if (key != kOfAllChats) settings[key] = value.is_string() ? value.get<std::string>() : "";
  }
  return settings;
}

Result<std::unique_ptr<OwnServer>> OwnServer::Start(const Flags& flags, const Environment& environment) {
  auto log = TRY(OpenServerLog(environment));
  auto out = TRY(MakePipe());
  auto held = TRY(MakePipe());
  const off_t before = ::lseek(log.get(), 0, SEEK_END);
  const auto child = TRY(Spawn(CommandOf(flags), out.second.get(), log.get(), held.first.get()));
  out.second.Reset();
  const std::string line = FirstLine(out.first.get());
  if (!line.starts_with(kListening)) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return Fail(CannotStart(Complaint(log.get(), before)));
  }
  return std::unique_ptr<OwnServer>(new OwnServer(line.substr(kListening.size()), std::move(held.second)));
}

Result<RunningServer> FindOrStartServer(const Flags& flags, const Environment& environment,
                                        std::unique_ptr<OwnServer>& own) {
  const Options options = TRY(LoadOptions(flags, environment));
  const auto wanted = SettingsOfAllChats(options, environment);
  const std::string lock_file = LockFile(options.data_dir);
  const auto deadline = DirectoryLock::Clock::now() + kPatience;
  bool has_settled = false, was_left = false;
  for (;;) {
    auto running = FindServer(options);
    Error refused;
    if (running && *running) {
      (*running)->settings = DigestOf(wanted);
      refused = TRY(AskToJoin(**running, options));
      if (refused.reason.empty()) return **std::move(running);
      if (refused.Is(Reason::kOtherSettings)) {
        // Its last client may just have gone.
        const bool is_left = refused.details_json.find("true") != std::string::npos;
        if (!is_left || std::exchange(was_left, true)) return Fail(Differs(**running, wanted, options));
        DirectoryLock::AwaitRelease(lock_file, DirectoryLock::Clock::now() + kPatienceWithLeft);
        continue;
      }
    } else if (running) {
      auto started = OwnServer::Start(flags, environment);
      if (started) {
        own = *std::move(started);
        return RunningServer{.url = own->url(), .settings = DigestOf(wanted)};
      }
      refused = std::move(started.error());
      // Trying again helps only if another server was quicker.
      if (const auto other = FindServer(options); other && !*other) return Fail(std::move(refused));
      if (DirectoryLock::Clock::now() > deadline) return Fail(std::move(refused));
      continue;
    } else {
      refused = std::move(running.error());
      if (!refused.Is(Reason::kStoreLocked)) return Fail(std::move(refused));
      if (!std::exchange(has_settled, true)) {
        if (!DirectoryLock::AwaitSettled(lock_file, deadline)) return Fail(std::move(refused));
        continue;
      }
    }
    if (!DirectoryLock::AwaitRelease(lock_file, deadline)) return Fail(std::move(refused));
    has_settled = false;
  }
}

ReleaseWatch::ReleaseWatch(int held, std::function<bool()> close_if_unused)
    : close_if_unused_(std::move(close_if_unused)),
      ended_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this, held] { Watch(held); }) {}

ReleaseWatch::~ReleaseWatch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = ::write(ended_.get(), &one, sizeof one);
  thread_.join();
}

void ReleaseWatch::Watch(int held) const {
  constexpr int kBetweenLooksMs = 200;
  bool released = false;
  for (;;) {
    // poll reports POLLHUP unasked and skips a negative descriptor.
    std::array<pollfd, 2> waits = {pollfd{ended_.get(), POLLIN, 0}, pollfd{released ? -1 : held, 0, 0}};
    if (::poll(waits.data(), waits.size(), released ? kBetweenLooksMs : -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    released = released || waits[1].revents != 0;
    if (!released || !close_if_unused_()) continue;
    ::kill(::getpid(), SIGTERM);
    return;
  }
}

}  // namespace reprise
