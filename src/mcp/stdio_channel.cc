#include "mcp/stdio_channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/logging.h"
#include "base/utf8.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{300};  // after each of: end of file on stdin, SIGTERM
constexpr std::chrono::seconds kMaxDying{2};
constexpr std::size_t kReadSize = 64 * 1024;
constexpr int kMaxLeftReads = 64;
// What a server that does not read may leave unread.
constexpr std::size_t kMaxUnsent = 8u << 20;
constexpr std::size_t kMaxLastLine = 300;

Error Closed(std::string message) {
  return Error{.code = ErrorCode::kUnavailable, .reason = "mcp_server_ended", .message = std::move(message)};
}

class StdioChannel final : public Channel {
 public:
  StdioChannel(SupervisedProcess process, UniqueFd wake) : process_(std::move(process)), wake_(std::move(wake)) {}
  ~StdioChannel() override { Close(); }

  void Start(ChannelListener& listener) override {
    listener_ = &listener;
    thread_ = std::jthread([this] { Loop(); });
  }

  void Send(OutgoingMessage message) override {
    const std::lock_guard lock(mutex_);
    unsent_ += message.json;
    unsent_ += '\n';
    Wake();
  }

  void Close() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      Wake();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  enum class State { kOpen, kInputClosed, kTerminating, kKilled, kGivenUp };

  void Wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  void Loop() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // SIGPIPE too: a write to a server that has gone only fails
    while (!gone_ && state_ != State::kGivenUp) Step();
    for (int i = 0; i < kMaxLeftReads && gone_ && ReadOutput(); ++i) {
    }
    for (int i = 0; i < kMaxLeftReads && ReadErrors(); ++i) {
    }
    if (gone_) {
      process_.Reap();
    } else {
      LogError("processes of an MCP server do not die");
    }
    if (!std::exchange(told_, true)) listener_->OnClosed(WhyItEnded());
  }

  void Step() {
    TakeOrders();
    std::array<pollfd, 5> waits{{{process_.report(), POLLIN, 0},
                                 {output_open_ ? process_.output() : -1, POLLIN, 0},
                                 {errors_open_ ? process_.errors() : -1, POLLIN, 0},
                                 {outgoing_.empty() ? -1 : process_.input(), POLLOUT, 0},
                                 {wake_.get(), POLLIN, 0}}};
    int timeout = -1;
    if (state_ != State::kOpen) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      timeout = static_cast<int>(std::max<std::int64_t>(left, 0));
    }
    ::poll(waits.data(), waits.size(), timeout);
    if (waits[4].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t taken = ::read(wake_.get(), &count, sizeof count);
    }
    if (waits[2].revents != 0) ReadErrors();
    if (waits[1].revents != 0) ReadOutput();
    if (waits[3].revents != 0) WriteInput();
    if (waits[0].revents != 0) gone_ = process_.ReadReports();
    if (state_ != State::kOpen && Clock::now() >= deadline_) Escalate();
  }

  void TakeOrders() {
    const std::lock_guard lock(mutex_);
    outgoing_ += unsent_;
    unsent_.clear();
    if (outgoing_.size() > kMaxUnsent) Break("does not read what it is sent");
    if (closing_ && state_ == State::kOpen) {
      told_ = true;  // whoever closes knows
      CloseInput();
    }
  }

  // End of file is the protocol's way to end a server; one that does not take it is ended.
  void CloseInput() {
    outgoing_.clear();
    process_.CloseInput();
    state_ = State::kInputClosed;
    deadline_ = Clock::now() + kPatience;
  }

  void Escalate() {
    switch (state_) {
      case State::kInputClosed:
        process_.Terminate();
        state_ = State::kTerminating;
        deadline_ = Clock::now() + kPatience;
        return;
      case State::kTerminating:
        process_.Kill();
        state_ = State::kKilled;
        deadline_ = Clock::now() + kMaxDying;
        return;
      case State::kKilled:
        state_ = State::kGivenUp;
        return;
      case State::kOpen:
      case State::kGivenUp:
        return;
    }
  }

  // The server broke the rules: it is ended at once.
  void Break(std::string_view what) {
    if (state_ == State::kKilled) return;
    broken_ = what;
    output_open_ = errors_open_ = false;
    outgoing_.clear();
    process_.Kill();
    state_ = State::kKilled;
    deadline_ = Clock::now() + kMaxDying;
  }

  // False: nothing there now, or nothing will come any more.
  bool ReadOutput() {
    if (!output_open_) return false;
    const ssize_t got = ::read(process_.output(), buffer_.data(), buffer_.size());
    if (got > 0) TakeBytes({buffer_.data(), static_cast<std::size_t>(got)});
    if (got == 0) {
      output_open_ = false;
      // Usually it is about to end; if not, it is of no use any more.
      if (state_ == State::kOpen && !gone_) CloseInput();
    }
    return got > 0;
  }

  void TakeBytes(std::string_view bytes) {
    while (!bytes.empty() && output_open_) {
      const std::size_t end = bytes.find('\n');
      if (line_.size() + std::min(end, bytes.size()) > kMaxMcpMessageBytes)
        return Break("sent a message of more than 4 MiB");
      line_ += bytes.substr(0, end);
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      if (line_.ends_with('\r')) line_.pop_back();
      if (!line_.empty() && !told_) listener_->OnMessage(line_);
      line_.clear();
      if (line_.capacity() > kReadSize) line_.shrink_to_fit();
    }
  }

  bool ReadErrors() {
    if (!errors_open_) return false;
    const ssize_t got = ::read(process_.errors(), buffer_.data(), buffer_.size());
    if (got == 0) errors_open_ = false;
    if (got <= 0) return false;
    errors_ += std::string_view(buffer_.data(), static_cast<std::size_t>(got));
    if (errors_.size() > 4096) errors_.erase(0, errors_.size() - 4096);
    return true;
  }

  void WriteInput() {
    const ssize_t written = ::write(process_.input(), outgoing_.data(), outgoing_.size());
    if (written > 0) outgoing_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno != EAGAIN && errno != EINTR) outgoing_.clear();  // it has closed its stdin, or ended
  }

  Error WhyItEnded() const {
    if (!broken_.empty()) return Closed("the server " + broken_ + " and was ended");
    if (const auto error = process_.start_error()) return *error;
    const int status = process_.status().value_or(SIGKILL);
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

  SupervisedProcess process_;
  const UniqueFd wake_;

  std::mutex mutex_;
  std::string unsent_;    // guarded by mutex_
  bool closing_ = false;  // guarded by mutex_

  // --- the thread's
  ChannelListener* listener_ = nullptr;
  State state_ = State::kOpen;
  Clock::time_point deadline_;  // of the state
  bool output_open_ = true, errors_open_ = true;
  bool gone_ = false;
  bool told_ = false;  // the listener will not be called any more
  std::string broken_;
  std::string outgoing_, line_, errors_;
  std::vector<char> buffer_ = std::vector<char>(kReadSize);

  std::jthread thread_;  // last: ends before what it uses is gone
};

}  // namespace

Result<std::unique_ptr<Channel>> OpenStdioChannel(const Command& command) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Fail(ErrorCode::kUnavailable, "too many files are open");
  auto process = SupervisedProcess::Start(command, SupervisedProcess::Streams::kSeparate);
  if (!process) return Fail(process.error());
  return std::make_unique<StdioChannel>(*std::move(process), std::move(wake));
}

}  // namespace reprise
