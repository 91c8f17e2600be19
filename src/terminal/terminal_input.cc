#include "terminal/terminal_input.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace reprise {
namespace {

// A paste arrives in pieces, where the terminal does not mark its end; after such a silence it has ended.
constexpr int kQuietMs = 50;
// After such a silence within a marked paste nobody waits for the rest of it; after such a one its end has been lost.
constexpr std::chrono::milliseconds kHalt{500};
constexpr std::chrono::seconds kLongestSilence{10};

// The terminal marks where a paste begins and ends, if it is asked to.
constexpr std::string_view kMarkPastes = "\x1b[?2004h", kDoNotMarkPastes = "\x1b[?2004l";
constexpr std::string_view kPasteBegin = "\x1b[200~", kPasteEnd = "\x1b[201~";

int OutputTerminal() { return ::isatty(STDOUT_FILENO) != 0 ? STDOUT_FILENO : STDERR_FILENO; }

void WriteToTerminal(std::string_view text) {
  [[maybe_unused]] const ssize_t size = ::write(OutputTerminal(), text.data(), text.size());  // nothing depends on it
}

// For the signals that end the process: what it leaves must be a terminal that one can type at.
termios mode_at_start;
bool pastes_are_marked = false;

void RestoreAndDie(int number) {
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode_at_start);
  if (pastes_are_marked) WriteToTerminal(kDoNotMarkPastes);
  ::raise(number);  // SA_RESETHAND: the usual course, when this has returned
}

void RestoreWhenKilled() {
  struct sigaction action {};
  action.sa_handler = RestoreAndDie;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) ::sigaction(number, &action, nullptr);
}

}  // namespace

TerminalInput::TerminalInput() {
  const char* const kind = std::getenv("TERM");
  is_dumb_ = kind == nullptr || std::string_view(kind).empty() || std::string_view(kind) == "dumb";
  editor_ = LineEditor::Open(*this);
  sigset_t held;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGINT);
  if (editor_ != nullptr && ::tcgetattr(STDIN_FILENO, &before_) != 0) editor_.reset();
  if (editor_ != nullptr) {
    ::sigaddset(&held, SIGTSTP);
    ::sigaddset(&held, SIGWINCH);
    mode_at_start = before_;
    pastes_are_marked = !is_dumb_;
    RestoreWhenKilled();
    HideTyping();
  }
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
}

TerminalInput::~TerminalInput() {
  if (editor_ == nullptr) return;
  editor_.reset();  // it has its own idea of the terminal
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  MarkPastes(false);
}

// What is typed while the agent speaks would stand in the middle of its text.
void TerminalInput::HideTyping() const {
  termios hidden = before_;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  hidden.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR);  // a paste's line ends stay what they are
  hidden.c_cc[VMIN] = 1;
  hidden.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &hidden);
  MarkPastes(true);
}

void TerminalInput::MarkPastes(bool marked) const {
  if (!is_dumb_) WriteToTerminal(marked ? kMarkPastes : kDoNotMarkPastes);
}

void TerminalInput::LeaveTerminal() {
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  MarkPastes(false);
}

void TerminalInput::Suspend() {
  LeaveTerminal();
  ::raise(SIGSTOP);
  ReturnToTerminal();
}

int TerminalInput::TakeSignal() {
  signalfd_siginfo info;
  return ::read(signals_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

bool TerminalInput::ReadMore() {
  std::array<char, 4096> bytes;
  const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size > 0) read_.append(bytes.data(), static_cast<std::size_t>(size));
  if (size > 0) last_read_ = std::chrono::steady_clock::now();
  if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) ended_ = true;
  return size > 0;
}

unsigned char TerminalInput::TakeByte() {
  const char byte = read_.front();
  read_.erase(0, 1);
  last_bytes_ += byte;
  if (last_bytes_.size() > kPasteBegin.size()) last_bytes_.erase(0, 1);
  if (last_bytes_ == kPasteBegin) in_paste_ = true;
  if (last_bytes_ == kPasteEnd) in_paste_ = false;
  return static_cast<unsigned char>(byte);
}

KeySource::Came TerminalInput::NextByte(unsigned char& byte) {
  for (;;) {
    if (in_paste_ && std::chrono::steady_clock::now() - last_read_ > kLongestSilence) in_paste_ = false;
    while (drops_paste_ && in_paste_ && !read_.empty()) TakeByte();
    if (!in_paste_) drops_paste_ = false;
    if (!read_.empty()) {
      byte = TakeByte();
      return KeySource::Came::kByte;
    }
    if (ended_) return KeySource::Came::kEnd;
    std::array<pollfd, 3> waits = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                   pollfd{meanwhile_->descriptor(), POLLIN, 0}};  // a negative one is passed over
    const int ready = ::poll(waits.data(), waits.size(), meanwhile_->timeout_ms());
    if (ready < 0 && errno != EINTR) return KeySource::Came::kEnd;
    if (waits[1].revents != 0) {
      const int number = TakeSignal();
      if (number == SIGINT) return KeySource::Came::kInterrupt;
      if (number == SIGTSTP) return KeySource::Came::kSuspend;
      if (number == SIGWINCH) return KeySource::Came::kResized;
    }
    // A paste is taken as a whole, unless it comes to a halt.
    const bool withdrawn = (ready == 0 || waits[2].revents != 0) && meanwhile_->proceed();
    const bool arrives = in_paste_ && !drops_paste_ && std::chrono::steady_clock::now() - last_read_ < kHalt;
    if (withdrawn && !arrives) return KeySource::Came::kWithdrawn;
    if (waits[0].revents != 0) ReadMore();
  }
}

TerminalInput::Came TerminalInput::Edit(const std::string& prompt, const Meanwhile& meanwhile, std::string& text) {
  meanwhile_ = &meanwhile;
  editing_ = true;
  const LineEditor::Came came = editor_->Edit(prompt, text);
  editing_ = false;
  meanwhile_ = nullptr;
  HideTyping();
  switch (came) {
    case LineEditor::Came::kLine:
      return Came::kLine;
    case LineEditor::Came::kEnd:
      return Came::kEnd;
    case LineEditor::Came::kInterrupt:
      return Came::kInterrupt;
    case LineEditor::Came::kWithdrawn:
      return Came::kWithdrawn;
  }
  return Came::kEnd;
}

TerminalInput::Came TerminalInput::ReadPipe(const Meanwhile& meanwhile, std::string& line) {
  for (;;) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos || (ended_ && !read_.empty())) {
      line = read_.substr(0, end);
      read_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return Came::kLine;
    }
    if (ended_) return Came::kEnd;
    std::array<pollfd, 3> waits = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                   pollfd{meanwhile.descriptor(), POLLIN, 0}};
    const int ready = ::poll(waits.data(), waits.size(), meanwhile.timeout_ms());
    if (ready < 0 && errno != EINTR) return Came::kEnd;
    if (waits[1].revents != 0 && TakeSignal() == SIGINT) return Came::kInterrupt;
    if ((ready == 0 || waits[2].revents != 0) && meanwhile.proceed()) return Came::kWithdrawn;
    if (waits[0].revents != 0) ReadMore();
  }
}

TerminalInput::Came TerminalInput::ReadMessage(const std::string& prompt, const Meanwhile& meanwhile,
                                               std::string& message) {
  if (editor_ == nullptr) return ReadPipe(meanwhile, message);
  const Came came = Edit(prompt, meanwhile, message);
  if (came == Came::kLine && !message.empty()) editor_->Remember(message);
  return came;
}

TerminalInput::Came TerminalInput::ReadAnswer(const std::string& prompt, const Meanwhile& meanwhile,
                                              std::string& answer) {
  if (meanwhile.proceed()) return Came::kWithdrawn;
  if (editor_ == nullptr) return ReadPipe(meanwhile, answer);
  ::tcdrain(OutputTerminal());  // what is asked can be seen
  DropTypedAhead();
  return Edit(prompt, meanwhile, answer);
}

void TerminalInput::DropTypedAhead() {
  pollfd waits{STDIN_FILENO, POLLIN, 0};
  do {
    while (!read_.empty()) TakeByte();
  } while (::poll(&waits, 1, kQuietMs) > 0 && ReadMore());
  drops_paste_ = in_paste_;
}

bool TerminalInput::WaitForOrInterrupt(int descriptor, std::optional<std::chrono::milliseconds> most) {
  std::array<pollfd, 2> waits = {pollfd{descriptor, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
  const int ready = ::poll(waits.data(), waits.size(), most ? static_cast<int>(most->count()) : -1);
  if (ready <= 0 || waits[1].revents == 0) return false;
  const int number = TakeSignal();
  if (number == SIGTSTP) Suspend();
  return number == SIGINT;
}

}  // namespace reprise
