#include "mcp/stdio_channel.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "base/try.h"
#include "mcp/answer_scanner.h"
#include "mcp/last_words.h"
#include "process/child_loop.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kPatience{300};  // after each of: end of file on stdin, SIGTERM
constexpr std::chrono::seconds kMaxDying{1};         // after each of: SIGKILL, the supervisor's end
constexpr std::size_t kKeptLine = 64 * 1024;
// What a server that does not read may leave unread.
constexpr std::size_t kMaxUnsent = 2 * kMaxMcpMessageBytes;
constexpr std::size_t kMaxBeforeMessage = 4096;
constexpr std::size_t kMaxKeptErrors = 16 * 1024;
// A message that is too long is passed over up to its end; one that has no end is no message.
constexpr std::size_t kMaxPassedOver = 256u << 20;

Error Closed(std::string message) {
  return Error{.code = ErrorCode::kUnavailable, .reason = "mcp_server_ended", .message = std::move(message)};
}

// Without what stands before it: a mark of byte order, words of a log.
std::string_view MessageIn(std::string_view line) {
  std::size_t begin = std::string_view::npos;
  for (const char* first : {"{\"jsonrpc\"", "{\"id\"", "{\"result\"", "{\"error\""}) {
    begin = std::min(begin, line.substr(0, kMaxBeforeMessage).find(first));
  }
  return line.substr(begin == std::string_view::npos ? 0 : begin);
}

class StdioChannel final : public Channel, private ChildLoop {
 public:
  StdioChannel(SupervisedProcess process, UniqueFd wake)
      : ChildLoop(std::move(process), wake.get(), {kPatience, kPatience, kMaxDying, kMaxDying}),
        wake_(std::move(wake)) {}
  ~StdioChannel() override { Close(); }

  void Start(ChannelListener& listener) override {
    listener_ = &listener;
    thread_ = std::jthread([this] { Loop(); });
  }

  void Send(OutgoingMessage message) override {
    const MutexLock lock(mutex_);
    unsent_ += message.json;
    unsent_ += '\n';
    Wake();
  }

  void Close() override {
    {
      const MutexLock lock(mutex_);
      closing_ = true;
      Wake();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  void Loop() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // SIGPIPE too: a write to a server that has gone only fails
    Guarded("an MCP server's channel", [this] {
      if (!Run()) LogError("processes of an MCP server do not die");
    });
    if (!std::exchange(told_, true)) {
      Guarded("who listens to an MCP server", [this] { listener_->OnClosed(WhyItEnded()); });
    }
  }

  void OnWake() override {
    const MutexLock lock(mutex_);
    outgoing_ += unsent_;
    unsent_.clear();
    if (outgoing_.size() > kMaxUnsent) Break("does not read what it is sent");
    if (!closing_ || ending() != Ending::kNot) return;
    told_ = true;  // whoever closes knows
    CloseInput();
  }

  // End of file is the protocol's way to end a server; one that does not take it is ended.
  void CloseInput() {
    outgoing_.clear();
    End(Ending::kInputClosed);
  }

  // The server broke the rules: it is ended at once.
  void Break(std::string_view what) {
    if (ending() >= Ending::kKilled) return;
    broken_ = what;
    StopReading();
    outgoing_.clear();
    End(Ending::kKilled);
  }

  // Usually it is about to end; if not, it is of no use any more.
  void OnOutputEnd() override {
    if (ending() == Ending::kNot) CloseInput();
  }

  void OnOutput(std::string_view bytes) override {
    while (!bytes.empty() && is_reading()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      if (passing_over_) {
        PassOver(part);
      } else if (line_.size() + part.size() > kMaxMcpMessageBytes) {
        passing_over_.emplace();
        PassOver(MessageIn(line_));
        PassOver(part);
        ClearLine();
      } else {
        line_ += part;
      }
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      EndLine();
    }
  }

  void EndLine() {
    if (const auto too_large = std::exchange(passing_over_, std::nullopt)) {
      passed_over_ = 0;
      const auto request = too_large->request();
      LogWarning("an MCP server sent a message that is too large", {{"answers_a_request", request.has_value()}});
      if (request && !told_) listener_->OnRequestFailed(*request, McpTooLargeError());
      return;
    }
    if (line_.ends_with('\r')) line_.pop_back();
    if (!line_.empty() && !told_) listener_->OnMessage(line_, std::nullopt);
    ClearLine();
  }

  void ClearLine() {
    line_.clear();
    if (line_.capacity() > kKeptLine) line_.shrink_to_fit();
  }

  void PassOver(std::string_view part) {
    passing_over_->Feed(part);
    passed_over_ += part.size();
    if (passed_over_ > kMaxPassedOver) Break("sent a message without an end");
  }

  void OnErrors(std::string_view bytes) override {
    errors_ += bytes;
    if (errors_.size() > kMaxKeptErrors) errors_.erase(0, errors_.size() - kMaxKeptErrors);
  }

  std::string_view Unsent() const override { return outgoing_; }
  void Sent(std::size_t bytes) override { outgoing_.erase(0, bytes); }

  Error WhyItEnded() {
    if (!broken_.empty()) return Closed("the server " + broken_ + " and was ended");
    if (const auto error = process().start_error()) return *error;
    const int status = process().status().value_or(SIGKILL);
    std::string text = WIFEXITED(status) ? "the server ended with exit status " + std::to_string(WEXITSTATUS(status))
                                         : "the server was ended by signal " + std::to_string(WTERMSIG(status));
    if (const std::string words = LastWords(errors_); !words.empty()) text += ": " + words;
    return Closed(std::move(text));
  }

  const UniqueFd wake_;

  Mutex mutex_;
  std::string unsent_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;

  // --- the thread's
  ChannelListener* listener_ = nullptr;
  bool told_ = false;  // the listener will not be called any more
  std::string broken_;
  std::string outgoing_, line_, errors_;
  std::optional<AnswerScanner> passing_over_;  // reads a message that is too long
  std::size_t passed_over_ = 0;

  std::jthread thread_;  // last: ends before what it uses is gone
};

}  // namespace

Result<std::unique_ptr<Channel>> OpenStdioChannel(const Command& command) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Fail(ErrorCode::kUnavailable, "too many files are open");
  auto process = TRY(SupervisedProcess::Start(command, SupervisedProcess::Streams::kSeparate));
  return std::make_unique<StdioChannel>(std::move(process), std::move(wake));
}

}  // namespace reprise
