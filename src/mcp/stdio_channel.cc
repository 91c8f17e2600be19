#include "mcp/stdio_channel.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "base/try.h"
#include "base/utf8.h"
#include "process/child_loop.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kPatience{300};  // after each of: end of file on stdin, SIGTERM
constexpr std::chrono::seconds kMaxDying{1};         // after each of: SIGKILL, the supervisor's end
constexpr std::size_t kKeptLine = 64 * 1024;
// What a server that does not read may leave unread.
constexpr std::size_t kMaxUnsent = 8u << 20;
constexpr std::size_t kMaxLastLine = 300;

Error Closed(std::string message) {
  return Error{.code = ErrorCode::kUnavailable, .reason = "mcp_server_ended", .message = std::move(message)};
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
      if (line_.size() + std::min(end, bytes.size()) > kMaxMcpMessageBytes)
        return Break("sent a message of more than 4 MiB");
      line_ += bytes.substr(0, end);
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      if (line_.ends_with('\r')) line_.pop_back();
      if (!line_.empty() && !told_) listener_->OnMessage(line_);
      line_.clear();
      if (line_.capacity() > kKeptLine) line_.shrink_to_fit();
    }
  }

  void OnErrors(std::string_view bytes) override {
    errors_ += bytes;
    if (errors_.size() > 4096) errors_.erase(0, errors_.size() - 4096);
  }

  std::string_view Unsent() const override { return outgoing_; }
  void Sent(std::size_t bytes) override { outgoing_.erase(0, bytes); }

  Error WhyItEnded() {
    if (!broken_.empty()) return Closed("the server " + broken_ + " and was ended");
    if (const auto error = process().start_error()) return *error;
    const int status = process().status().value_or(SIGKILL);
    std::string text = WIFEXITED(status) ? "the server ended with exit status " + std::to_string(WEXITSTATUS(status))
                                         : "the server was ended by signal " + std::to_string(WTERMSIG(status));
    if (const std::string line = LastLine(); !line.empty()) text += ": " + line;
    return Closed(std::move(text));
  }

  std::string LastLine() const {
    std::string_view text = errors_;
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    const std::size_t newline = text.rfind('\n');
    std::string line = ToValidUtf8(newline == std::string_view::npos ? text : text.substr(newline + 1));
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return std::string(Utf8Prefix(line, kMaxLastLine));
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
