#include "mcp/channel.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/logging.h"
#include "base/mutex.h"
#include "base/text.h"
#include "base/try.h"
#include "process/child_loop.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxWord = 32;

}  // namespace

void AnswerScanner::Feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (!in_string_ && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    if (depth_ == 0 && c != '{') is_answer_ = false;  // a line of a log, a batch, or more than one message
    if (!is_answer_) return;
    const bool is_outermost = depth_ == 1;
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      } else if (is_outermost && word_.size() < kMaxWord) {
        word_ += c;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      if (is_outermost) EndMember();
      --depth_;
    } else if (is_outermost && c == ':') {
      name_.swap(word_);
      word_.clear();
      is_answer_ = name_ != "method";
    } else if (is_outermost && c == ',') {
      EndMember();
    } else if (is_outermost && word_.size() < kMaxWord) {
      word_ += c;
    }
  }
}

void AnswerScanner::EndMember() {
  std::int64_t number = 0;
  const char* const end = word_.data() + word_.size();
  const auto [stopped, error] = std::from_chars(word_.data(), end, number);
  // Some servers write the number as a string or with a decimal point.
  const bool is_whole = std::string_view(stopped, static_cast<std::size_t>(end - stopped)).find_first_not_of(".0") ==
                        std::string_view::npos;
  if (name_ == "id" && error == std::errc() && is_whole) id_ = number;
  name_.clear();
  word_.clear();
}

namespace {

constexpr std::size_t kMaxLastWords = 600;  // characters
constexpr std::size_t kMaxErrorLines = 3;

bool StartsWithAny(std::string_view line, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view each) { return line.starts_with(each); });
}

bool HasAny(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view each) { return line.find(each) != std::string_view::npos; });
}

// Lines that runtimes and package managers print around the reason: stack frames, source lines, notes and versions.
bool IsSurrounding(std::string_view line) {
  return line.empty() || line.front() == ' ' || line.front() == '\t' ||
         line.find_first_not_of("^~ {}[](),;") == std::string_view::npos ||
         StartsWithAny(line, {"Node.js v", "Bun v", "Deno ", "Traceback (", "node:internal/", "note: ", "goroutine ",
                              "exit status ", "npm error A complete log", "npm ERR! A complete log",
                              "During handling of", "The above exception"}) ||
         line == "npm error" || line == "npm ERR!";
}

bool NamesError(std::string_view line) {
  return HasAny(line, {"Error: ", "Error [", "Exception: ", "Error)", " panicked at "}) ||
         StartsWithAny(line, {"error: ", "fatal: ", "panic: ", "Caused by: ", "npm error ", "npm ERR! ", "ERROR"}) ||
         line.ends_with("Error") || line.ends_with("Exception");
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string LastWords(std::string_view errors) {
  const auto lines = LinesOf(errors);
  std::string words;
  const auto add = [&](std::string_view line) { words += (words.empty() ? "" : " | ") + std::string(line); };
  auto last = lines.size();  // one past the last line that may be the reason
  while (last > 0 && IsSurrounding(lines[last - 1])) --last;
  auto error = last;  // one past the first line of the last group that names an error
  while (error > 0 && (IsSurrounding(lines[error - 1]) || !NamesError(lines[error - 1]))) --error;
  while (error > 1 && !IsSurrounding(lines[error - 2]) && NamesError(lines[error - 2])) --error;
  if (error > 0) {
    auto next = error - 1;
    for (std::size_t count = 0; next < lines.size() && count < kMaxErrorLines; ++next, ++count) {
      if (count > 0 && IsSurrounding(lines[next])) break;
      add(lines[next]);
    }
    if (next < last) add(lines[last - 1]);
  } else if (last > 0) {
    add(lines[last - 1]);
  } else {  // only surrounding lines
    const auto some = std::find_if(lines.rbegin(), lines.rend(), [](std::string_view line) { return !line.empty(); });
    if (some != lines.rend()) add(some->substr(std::min(some->find_first_not_of(" \t"), some->size())));
  }
  words = ToValidUtf8(words);
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return std::string(Utf8Prefix(words, kMaxLastWords));
}

namespace {

constexpr std::chrono::milliseconds kPatience{300};  // after each of: end of file on stdin, SIGTERM
constexpr std::chrono::seconds kMaxDying{1};         // after each of: SIGKILL, the supervisor's end
constexpr std::size_t kKeptLine = 64 * 1024;
// The most that may wait for a server that does not read.
constexpr std::size_t kMaxUnsent = 2 * kMaxMcpMessageBytes;
constexpr std::size_t kMaxBeforeMessage = 4096;
constexpr std::size_t kMaxKeptErrors = 16 * 1024;
// A message that is too long is skipped up to its end. The server is ended if this many bytes do not reach it.
constexpr std::size_t kMaxPassedOver = 256u << 20;

Error Closed(std::string message) { return Refused(Reason::kMcpServerEnded, std::move(message)); }

// The line without a byte order mark or log text before the message.
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
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // SIGPIPE too, so that a write to an ended server only fails
    Guarded("an MCP server's channel", [this] {
      if (!Run()) LogError("processes of an MCP server cannot be killed");
    });
    if (!std::exchange(told_, true)) {
      Guarded("the listener of an MCP server's channel", [this] { listener_->OnClosed(WhyItEnded()); });
    }
  }

  void OnWake() override {
    const MutexLock lock(mutex_);
    outgoing_ += unsent_;
    unsent_.clear();
    if (outgoing_.size() > kMaxUnsent) Break("does not read what it is sent");
    if (!closing_ || ending() != Ending::kNot) return;
    told_ = true;  // the caller of Close knows
    CloseInput();
  }

  // End of file is the protocol's way to end a server. If the server stays, it is killed.
  void CloseInput() {
    outgoing_.clear();
    End(Ending::kInputClosed);
  }

  // The server violated the protocol, so it is killed at once.
  void Break(std::string_view what) {
    if (ending() >= Ending::kKilled) return;
    broken_ = what;
    StopReading();
    outgoing_.clear();
    End(Ending::kKilled);
  }

  // Usually the server is about to end. If not, it is useless without its output.
  void OnOutputEnd() override {
    if (!line_.empty() || !lines_.empty()) EndLine();  // the last message may lack its end
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
    if (JoinLines() && !line_.empty() && !told_) listener_->OnMessage(line_, std::nullopt);
    ClearLine();
  }

  // Some servers write a message over several lines, the first and the last a bracket alone. False: more lines follow.
  bool JoinLines() {
    const bool is_first = line_ == "{" || line_ == "[";
    if (is_first || line_.starts_with("{\"") || IsMessage() || lines_.size() + line_.size() > kMaxMcpMessageBytes)
      lines_.clear();
    if (lines_.empty() && !is_first) return true;
    lines_ += line_ + '\n';
    if (line_ != "}" && line_ != "]" && is_reading()) return false;
    line_ = std::exchange(lines_, {});
    return true;
  }

  // Whether this line is a message by itself, so that the bracket before it was only printed. The last message of a
  // batch follows a comma.
  bool IsMessage() const {
    const std::size_t begin = line_.find_first_not_of(" \t");
    if (lines_.empty() || lines_.ends_with(",\n") || begin == std::string::npos || line_[begin] != '{') return false;
    const auto message = ParseJson(line_, kMaxMcpMessageDepth, DuplicateMembers::kLastWins);
    return message && message->contains("jsonrpc");
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

  // --- used by the thread only
  ChannelListener* listener_ = nullptr;
  bool told_ = false;  // the listener must not be called any more
  std::string broken_;
  std::string outgoing_, line_, errors_;
  std::string lines_;                          // of a message that has several
  std::optional<AnswerScanner> passing_over_;  // set while a message that is too long is skipped
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
