#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/checks.h"
#include "app/factories.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "base/text.h"
#include "net/curl_transport.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kPatience{3};

using Answer = Result<std::vector<ListedModel>>;

// Shared with answers that arrive after the wait.
struct Answers {
  Mutex mutex;
  Condition arrived;
  std::map<std::string, Answer> by_provider GUARDED_BY(mutex);
};

bool IsModelOf(const std::string& model, const ProviderOptions& provider) {
  return model.starts_with(provider.name + "/");
}

bool CanBeAsked(const ProviderOptions& provider) { return !WantsKey(provider) || !provider.api_key.empty(); }

std::string NameOfCheck(const ProviderOptions& provider) { return "provider " + provider.name; }

Finding Judge(const ProviderOptions& provider, const Options& options, const std::optional<Answer>& answer) {
  const std::string check = NameOfCheck(provider), at = " at " + provider.base_url;
  if (!answer) return {check, Verdict::kFailure, "it does not answer within 3 seconds" + at};
  if (!*answer) {
    const Error& error = answer->error();
    // The provider answers but has no list, like many servers.
    const bool answers = error.Is(Reason::kProviderNotFound) || error.Is(Reason::kProviderBadRequest);
    if (answers) return {check, Verdict::kOk, "it answers, and does not list its models" + at};
    return {check, Verdict::kFailure, error.message + at};
  }
  const auto& models = **answer;
  const std::string count = CountOf(models.size(), "model");
  if (IsModelOf(options.model, provider) && !models.empty()) {
    const std::string name = options.model.substr(provider.name.size() + 1);
    const bool listed = std::ranges::any_of(models, [&](const ListedModel& model) { return model.name == name; });
    if (!listed) return {check, Verdict::kWarning, "it answers and lists " + count + ", but not " + name + at};
  }
  return {check, Verdict::kOk, "it answers and lists " + count + at};
}

}  // namespace

std::vector<Finding> CheckProviders(const Options& options) {
  CurlTransport transport;
  const auto models = MakeModelDirectory(transport, options);
  if (!models) return {{"model", Verdict::kFailure, models.error().message}};
  const auto answers = std::make_shared<Answers>();
  std::stop_source give_up;
  std::vector<const ProviderOptions*> asked;
  std::vector<Finding> findings;
  for (const ProviderOptions& provider : options.providers) {
    if (CanBeAsked(provider)) {
      const auto resolved = (*models)->Resolve(provider.name + "/any");  // any name: the client is the provider's
      if (!resolved) continue;
      asked.push_back(&provider);
      resolved->client->ListModels(give_up.get_token(), [answers, name = provider.name](Answer answer) {
        const MutexLock lock(answers->mutex);
        answers->by_provider.emplace(name, std::move(answer));
        answers->arrived.notify_all();
      });
    } else if (IsModelOf(options.model, provider)) {
      findings.push_back({NameOfCheck(provider), Verdict::kFailure,
                          "the model " + options.model + " needs an API key, and there is none (" +
                              (provider.type == "anthropic" ? "ANTHROPIC_API_KEY" : "OPENAI_API_KEY") +
                              ", or api_key in the configuration)"});
    }
  }
  MutexLock lock(answers->mutex);
  answers->arrived.wait_for(lock, kPatience,
                            [&]() REQUIRES(answers->mutex) { return answers->by_provider.size() == asked.size(); });
  for (const ProviderOptions* provider : asked) {
    const auto answer = answers->by_provider.find(provider->name);
    findings.push_back(
        Judge(*provider, options,
              answer == answers->by_provider.end() ? std::nullopt : std::optional<Answer>(std::move(answer->second))));
  }
  lock.unlock();
  give_up.request_stop();
  return findings;
}

namespace {

void LogFindings(const Options& options) {
  for (const Finding& finding : CheckProviders(options)) {
    if (finding.verdict == Verdict::kOk) continue;
    LogWarning("a model's provider may be unusable", {{"check", finding.check}, {"finding", finding.words}});
  }
}

// The process's whole life. Signals from the terminal stop it too.
[[noreturn]] void AskWhenTold(const Options& options, int told) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  char go = 0;
  if (::read(told, &go, 1) == 1) {
    // Yields to the server's first requests, which come now.
    constexpr int kNice = 10;
    static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNice));
    try {
      LogFindings(options);
    } catch (const std::exception&) {  // no memory left, so no warnings
    }
  }
  ::_exit(0);
}

}  // namespace

ProviderCheck::ProviderCheck(const Options& options) {
  if (std::ranges::none_of(options.providers, CanBeAsked)) {
    LogFindings(options);
    return;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    LogWarning("the providers are not checked: no descriptor is left");
    return;
  }
  const UniqueFd told(ends[0]);
  go_ = UniqueFd(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    go_.Reset();
    AskWhenTold(options, told.get());
  }
  process_ = UniqueFd(pid < 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

void ProviderCheck::Begin() {
  if (!process_) return;
  static_cast<void>(::write(go_.get(), "", 1));
  reaper_ = std::jthread([this] { Reap(); });
}

ProviderCheck::~ProviderCheck() {
  if (!process_) return;
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  if (!reaper_.joinable()) Reap();
}

void ProviderCheck::Reap() const {
  siginfo_t ended;
  while (::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &ended, WEXITED) < 0 && errno == EINTR) {
  }
}

}  // namespace reprise
