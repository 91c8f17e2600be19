#include "terminal/terminal_input.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace reprise {
namespace {

constexpr char kEsc = '\x1b';
// After Esc, the beginnings of control strings (ECMA-48, 5.6: OSC, DCS, APC, PM, SOS), such as a terminal's late answer
// to a program that has ended. No person types one.
constexpr std::string_view kStringsBegin = "]P_^X";
constexpr std::size_t kLongestString = 4096;
constexpr int kShift = 1, kAlt = 2, kCtrl = 4;  // bits of a modifier, less one

Key Edits(std::string bytes, std::size_t length) {
  return {.kind = Key::Kind::kEdits, .bytes = std::move(bytes), .length = length};
}

// The numbers between the semicolons. Text after a colon in one has further details of the same key, which are ignored.
std::vector<int> NumbersOf(std::string_view parameters) {
  std::vector<int> numbers;
  for (std::size_t from = 0; from <= parameters.size();) {
    const std::size_t end = std::min(parameters.find(';', from), parameters.size());
    int number = 0;
    std::from_chars(parameters.data() + from, parameters.data() + end, number);
    numbers.push_back(number);
    from = end + 1;
  }
  numbers.resize(std::max<std::size_t>(numbers.size(), 3));
  return numbers;
}

// Whether the editor has a command for Alt with this letter, or Alt deletes a word with it.
bool HasMeaningWithAlt(char letter) { return std::string_view("bcdflu\x7f\b").find(letter) != std::string_view::npos; }

// A key that the terminal reports by its code and the held keys.
Key CodedKey(int code, int held, std::size_t length) {
  held &= 0x3f;  // ignores Caps Lock and Num Lock
  constexpr int kPrivate = 0xe000, kBehindPrivate = 0xf8ff, kLast = 0x10ffff;
  if (code <= 0 || code > kLast || (code >= kPrivate && code <= kBehindPrivate)) return {.bytes = {}, .length = length};
  if (code == kEsc || (code == '[' && held == kCtrl)) return {Key::Kind::kEscape, {}, length};
  if (code == '\t' && held == kShift) return Edits("\x1b[Z", length);
  if (code == '\r' && held != 0) return Edits(held == kCtrl ? "\r" : "\x1b\r", length);
  if ((held & ~kShift) == 0) return Edits(Utf8Of(static_cast<char32_t>(code)), length);
  const char letter = code < 0x80 ? static_cast<char>(code) : '\0';
  if (held == kCtrl && letter > '@' && letter != '\x7f') return Edits({static_cast<char>(letter & 0x1f)}, length);
  if (held == kAlt && HasMeaningWithAlt(letter)) return Edits({kEsc, letter}, length);
  if (letter == '\x7f') return Edits({letter}, length);
  return held == kAlt ? Edits(Utf8Of(static_cast<char32_t>(code)), length) : Key{.bytes = {}, .length = length};
}

// A whole sequence: ESC [ parameters final.
Key SequenceKey(std::string_view sequence) {
  const char final = sequence.back();
  const std::vector<int> numbers = NumbersOf(sequence.substr(2, sequence.size() - 3));
  const int held = std::max(numbers[1], 1) - 1;
  if (final == 'u') return CodedKey(numbers[0], held, sequence.size());
  if (final == '~' && numbers[0] == 27) return CodedKey(numbers[2], held, sequence.size());
  if (final == 'Z') return Edits("\x1b[Z", sequence.size());  // Shift-Tab
  if (std::string_view("ABCDHF").find(final) != std::string_view::npos && numbers[0] <= 1) {
    const bool by_word = (held & (kAlt | kCtrl)) != 0 && (final == 'C' || final == 'D');
    return Edits(by_word ? std::string("\x1b[1;5") + final : std::string("\x1b[") + final, sequence.size());
  }
  constexpr std::array kKnown = {1, 3, 4, 200, 201};  // Home, Delete, End, and the marks of a paste
  if (final == '~' && std::ranges::find(kKnown, numbers[0]) != kKnown.end()) {
    return Edits("\x1b[" + std::to_string(numbers[0]) + "~", sequence.size());
  }
  return {.bytes = {}, .length = sequence.size()};
}

// Whether Esc and one printable character came together. They are Alt with that key, perhaps one without a meaning;
// text directly after Esc does not come alone.
bool IsChord(std::string_view bytes) {
  const bool is_printable = bytes[1] >= ' ' && bytes[1] < '\x7f';
  return (is_printable || HasMeaningWithAlt(bytes[1])) && (bytes.size() == 2 || bytes[2] == kEsc);
}

// A key of the number pad in application mode: ESC O and its character, 0x40 above it.
Key KeypadKey(char final) {
  if (final == 'M') return Edits("\r", 3);
  return final >= 'j' && final <= 'y' ? Edits({static_cast<char>(final - 0x40)}, 3) : Key{.bytes = {}, .length = 3};
}

std::optional<Key> Character(std::string_view bytes, bool no_more) {
  if (!no_more && IncompleteUtf8Tail(bytes.substr(0, 4)) == std::min<std::size_t>(bytes.size(), 4)) return std::nullopt;
  if (bytes.front() == '\0') return Key{.bytes = {}, .length = 1};  // Ctrl-Space
  const auto first = static_cast<unsigned char>(bytes.front());
  std::size_t most = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  most = std::min(most, bytes.size());
  std::size_t length = 1;  // a truncated character ends where the next one begins
  while (length < most && (static_cast<unsigned char>(bytes[length]) & 0xc0) == 0x80) ++length;
  return Edits(std::string(bytes.substr(0, length)), length);
}

}  // namespace

std::optional<Key> FirstKey(std::string_view bytes, bool in_paste, bool no_more) {
  if (in_paste) {
    if (bytes.starts_with(kPasteEnd)) return Edits(std::string(kPasteEnd), kPasteEnd.size());
    if (kPasteEnd.starts_with(bytes) && !no_more) return std::nullopt;
    return Character(bytes, no_more);
  }
  if (bytes.front() != kEsc) return Character(bytes, no_more);
  const Key alone{Key::Kind::kEscape, {}, 1}, unused_chord{.bytes = {}, .length = 2};
  if (bytes.size() == 1) return no_more ? std::optional(alone) : std::nullopt;
  if (bytes[1] == '[') {
    std::size_t at = 2;
    while (at < bytes.size() && bytes[at] >= 0x20 && bytes[at] <= 0x3f) ++at;
    if (at == bytes.size() && !no_more) return std::nullopt;
    if (at == bytes.size()) return at == 2 ? unused_chord : alone;
    return bytes[at] >= 0x40 && bytes[at] <= 0x7e ? SequenceKey(bytes.substr(0, at + 1)) : alone;
  }
  if (bytes[1] == 'O') {
    if (bytes.size() == 2) return no_more ? std::optional(unused_chord) : std::nullopt;
    if (std::string_view("ABCDHF").find(bytes[2]) != std::string_view::npos) {
      return Edits(std::string("\x1b[") + bytes[2], 3);
    }
    if (bytes[2] >= 'P' && bytes[2] <= 'S') return Key{.bytes = {}, .length = 3};  // F1 to F4
    return IsChord(bytes.substr(1)) ? KeypadKey(bytes[2]) : alone;
  }
  if (kStringsBegin.find(bytes[1]) != std::string_view::npos) {
    const std::size_t end = bytes.find_first_of("\a\x1b", 2);
    const std::string_view rest = bytes.substr(std::min(end, bytes.size()));
    if (rest.starts_with('\a') || rest.starts_with("\x1b\\"))
      return Key{.bytes = {}, .length = end + 1 + (rest[0] != '\a')};
    if (rest.size() <= 1 && bytes.size() < kLongestString && !no_more) return std::nullopt;
  }
  if (bytes[1] == '\r' || bytes[1] == '\n') return Edits("\x1b\r", 2);
  if (!IsChord(bytes)) return alone;
  return HasMeaningWithAlt(bytes[1]) ? Edits(std::string(bytes.substr(0, 2)), 2) : unused_chord;
}

namespace {

using Clock = std::chrono::steady_clock;

// A key that is an answer comes alone: no other follows within this time.
constexpr std::chrono::milliseconds kAlone{50};
// How long to wait for more after a lone Esc, and after the beginning of a longer sequence, because lines can be slow.
constexpr std::chrono::milliseconds kEscapeWaits{50}, kSequenceWaits{500};
// After the first silence within a marked paste, its rest is not waited for; after the second, its end counts as lost.
constexpr std::chrono::milliseconds kHalt{500};
constexpr std::chrono::seconds kLongestSilence{10};
constexpr std::chrono::milliseconds kSizeRests{100}, kLongestDrag{2000};

constexpr std::string_view kInterruptKey = "\x03", kSuspendKey = "\x1a", kQuitKey = "\x1c";

// Asks for marked pastes, and to tell apart keys that used to be the same (Shift-Enter and Enter): by kitty's protocol,
// and by xterm's modifyOtherKeys.
constexpr std::string_view kAsk = "\x1b[?2004h\x1b[>1u\x1b[>4;1m";
constexpr std::string_view kAskNoMore = "\x1b[?2004l\x1b[<u\x1b[>4;0m";

int OutputTerminal() { return ::isatty(STDOUT_FILENO) != 0 ? STDOUT_FILENO : STDERR_FILENO; }

void WriteToTerminal(std::string_view text) {
  [[maybe_unused]] const ssize_t size = ::write(OutputTerminal(), text.data(), text.size());  // nothing depends on it
}

// For signals that end the process: the terminal must be usable afterwards.
termios mode_at_start;
volatile sig_atomic_t asks_for_keys = 0;

void RestoreAndDie(int number) {
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode_at_start);
  if (asks_for_keys != 0) WriteToTerminal(kAskNoMore);
  ::raise(number);  // SA_RESETHAND: has its usual effect when this has returned
}

void RestoreWhenKilled() {
  struct sigaction action {
  }, present{};
  action.sa_handler = RestoreAndDie;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) ::sigaction(number, &action, nullptr);
  for (const int number : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV}) {  // sanitizers have their own handlers
    if (::sigaction(number, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) {
      ::sigaction(number, &action, nullptr);
    }
  }
}

}  // namespace

TerminalInput::TerminalInput() {
  const char* const kind = std::getenv("TERM");
  is_dumb_ = kind == nullptr || std::string_view(kind).empty() || std::string_view(kind) == "dumb";
  editor_ = LineEditor::Open(*this, !is_dumb_);
  sigset_t held;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGINT);
  if (editor_ != nullptr && ::tcgetattr(STDIN_FILENO, &before_) != 0) editor_.reset();
  if (editor_ != nullptr) {
    ::sigaddset(&held, SIGTSTP);
    ::sigaddset(&held, SIGWINCH);
    mode_at_start = before_;
    RestoreWhenKilled();
    HideTyping();
  }
  ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
}

TerminalInput::~TerminalInput() {
  if (editor_ == nullptr) return;
  editor_.reset();  // first, because it restores its own mode of the terminal
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  AskForKeys(false);
}

// Hides keys typed while the agent speaks, because they would appear within its text.
void TerminalInput::HideTyping() const {
  termios hidden = before_;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  hidden.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR);  // keeps the line ends of a paste
  hidden.c_cc[VMIN] = 1;
  hidden.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &hidden);
  AskForKeys(true);
}

// Only on a change, because kitty's protocol counts requests.
void TerminalInput::AskForKeys(bool wanted) const {
  if (is_dumb_ || wanted == (asks_for_keys != 0)) return;
  asks_for_keys = wanted ? 1 : 0;
  WriteToTerminal(wanted ? kAsk : kAskNoMore);
}

void TerminalInput::LeaveTerminal() {
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  AskForKeys(false);
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
  if (size > 0) {
    last_read_ = Clock::now();
    if (read_.empty()) first_read_ = last_read_;
    read_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) ended_ = true;
  return size > 0;
}

bool TerminalInput::StaysAlone(std::chrono::milliseconds moment) {
  pollfd waits{STDIN_FILENO, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(last_read_ + moment - Clock::now()).count();
  return ::poll(&waits, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0 || !ReadMore();
}

std::optional<Key> TerminalInput::WholeKey() {
  while (!read_.empty()) {
    if (auto key = FirstKey(read_, in_paste_, ended_)) return key;
    // Does not wait between the pieces of a paste.
    const auto silence = in_paste_ ? std::chrono::milliseconds(0) : read_.size() == 1 ? kEscapeWaits : kSequenceWaits;
    if (!StaysAlone(silence)) continue;
    if (in_paste_ && Clock::now() - last_read_ < kHalt) return std::nullopt;
    return FirstKey(read_, in_paste_, /*no_more=*/true);
  }
  return std::nullopt;
}

bool TerminalInput::HasKey() const {
  pollfd waits{STDIN_FILENO, POLLIN, 0};
  return !read_.empty() || ::poll(&waits, 1, 0) > 0;
}

KeySource::Came TerminalInput::GiveUp(Came why) {
  why_ = why;
  return KeySource::Came::kGivenUp;
}

void TerminalInput::Resized() {
  if (meanwhile_->resized) meanwhile_->resized();
}

// While a window is dragged its size changes many times a second, and each drawing at a size that is gone may leave
// rows in the terminal's history.
void TerminalInput::AwaitSize() {
  const auto until = Clock::now() + kLongestDrag;
  pollfd signals{signals_.get(), POLLIN, 0};
  while (Clock::now() < until && ::poll(&signals, 1, static_cast<int>(kSizeRests.count())) > 0) {
    if (const int number = TakeSignal(); number != 0 && number != SIGWINCH) {
      ::raise(number);
      return;
    }
  }
}

KeySource::Came TerminalInput::NextKey(std::string& key) {
  for (;;) {
    if (in_paste_ && read_.empty() && Clock::now() - last_read_ > kLongestSilence) read_ = kPasteEnd;
    if (auto first = WholeKey()) {
      // Answers nothing by itself, so it may come in any burst.
      const bool chooses = question_ != nullptr && question_->chooses && !in_paste_ && editor_->IsEmpty() &&
                           (first->bytes == kUpKey || first->bytes == kDownKey);
      if (chooses) {
        read_.erase(0, first->length);
        answer_key_ = first->bytes;
        return GiveUp(Came::kKey);
      }
      const bool is_in_time = question_ != nullptr && first_read_ >= answers_from_;
      if (is_in_time && editor_->IsEmpty()) is_early_ = false;
      if (!is_in_time) is_early_ = true;
      const bool is_alone = first->length == read_.size();
      if (first->kind == Key::Kind::kEdits && is_in_time && is_alone && !in_paste_ && question_->takes_key &&
          editor_->IsEmpty() && question_->takes_key(first->bytes)) {
        if (!StaysAlone(kAlone)) continue;
        read_.clear();
        answer_key_ = first->bytes;
        return GiveUp(Came::kKey);
      }
      // In vi, Esc and a command may be typed that quickly.
      const bool is_unused_chord = first->kind == Key::Kind::kNothing && first->length == 2 && !in_paste_;
      if (is_unused_chord && editor_->TakesEscape()) first = Key{Key::Kind::kEscape, {}, 1};
      read_.erase(0, first->length);
      if (first->bytes == kPasteBegin) in_paste_ = true;
      if (first->bytes == kPasteEnd) in_paste_ = false;
      if (first->kind == Key::Kind::kEscape && editor_->CloseMenu()) continue;
      if (first->kind == Key::Kind::kEscape && editor_->TakesEscape()) {
        key = kEscapeKey;
        return KeySource::Came::kKey;
      }
      if (first->kind == Key::Kind::kEscape) return GiveUp(Came::kEscape);
      if (first->kind != Key::Kind::kEdits) continue;
      if (!in_paste_ && first->bytes == kInterruptKey) return GiveUp(Came::kInterrupt);
      if (!in_paste_ && first->bytes == kSuspendKey) return KeySource::Came::kSuspend;
      if (!in_paste_ && first->bytes == kQuitKey) ::raise(SIGQUIT);
      key = first->bytes;
      return KeySource::Came::kKey;
    }
    if (ended_) return GiveUp(Came::kEnd);
    std::vector<pollfd> waits = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
    for (const int descriptor : meanwhile_->descriptors()) waits.push_back({descriptor, POLLIN, 0});
    int timeout_ms = meanwhile_->timeout_ms();
    if (in_paste_ && (timeout_ms < 0 || timeout_ms > kHalt.count())) timeout_ms = static_cast<int>(kHalt.count());
    const int ready = ::poll(waits.data(), waits.size(), timeout_ms);
    if (ready < 0 && errno != EINTR) return GiveUp(Came::kEnd);
    if (waits[1].revents != 0) {
      const int number = TakeSignal();
      if (number == SIGINT) return GiveUp(Came::kInterrupt);
      if (number == SIGTSTP) return KeySource::Came::kSuspend;
      if (number == SIGWINCH) {
        AwaitSize();
        return KeySource::Came::kResized;
      }
    }
    // Takes a paste as a whole, unless it stalls.
    const bool has_come = std::any_of(waits.begin() + 2, waits.end(), [](const pollfd& each) { return each.revents; });
    const bool withdrawn = (ready == 0 || has_come) && meanwhile_->proceed();
    const bool arrives = in_paste_ && Clock::now() - last_read_ < kHalt;
    if (withdrawn && !arrives) return GiveUp(Came::kWithdrawn);
    pollfd still{STDIN_FILENO, POLLIN, 0};  // AskTerminal may have read it
    if (waits[0].revents != 0 && ::poll(&still, 1, 0) > 0) ReadMore();
  }
}

TerminalInput::Came TerminalInput::Edit(const std::string& prompt, const Meanwhile& meanwhile, std::string& text) {
  meanwhile_ = &meanwhile;
  editing_ = true;
  is_early_ = question_ != nullptr && question_->holds_draft && !text.empty();
  if (in_paste_) read_.insert(0, kPasteBegin);  // the rest of a stalled paste is text as well
  in_paste_ = false;
  const LineEditor::Came came = editor_->Edit(prompt, text);
  editing_ = false;
  meanwhile_ = nullptr;
  HideTyping();
  switch (came) {
    case LineEditor::Came::kLine:
      return question_ != nullptr && is_early_ ? Came::kEarly : Came::kLine;
    case LineEditor::Came::kEnd:
      return Came::kEnd;
    case LineEditor::Came::kGivenUp:
      if (why_ == Came::kKey) text = answer_key_;
      return why_;
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
    std::vector<pollfd> waits = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
    for (const int descriptor : meanwhile.descriptors()) waits.push_back({descriptor, POLLIN, 0});
    const int ready = ::poll(waits.data(), waits.size(), meanwhile.timeout_ms());
    if (ready < 0 && errno != EINTR) return Came::kEnd;
    if (waits[1].revents != 0 && TakeSignal() == SIGINT) return Came::kInterrupt;
    const bool has_come = std::any_of(waits.begin() + 2, waits.end(), [](const pollfd& each) { return each.revents; });
    if ((ready == 0 || has_come) && meanwhile.proceed()) return Came::kWithdrawn;
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

TerminalInput::Came TerminalInput::ReadAnswer(const Question& question, const Meanwhile& meanwhile,
                                              std::string& answer) {
  if (meanwhile.proceed()) return Came::kWithdrawn;
  if (editor_ == nullptr) return ReadPipe(meanwhile, answer);
  ::tcdrain(OutputTerminal());  // the question is visible now, so earlier bytes were typed before it
  pollfd waits{STDIN_FILENO, POLLIN, 0};
  while (::poll(&waits, 1, 0) > 0 && ReadMore()) {
  }
  answers_from_ = Clock::now() + question.quiet;
  question_ = &question;
  const Came came = Edit(question.prompt, meanwhile, answer);
  question_ = nullptr;
  return came;
}

// Ctrl-C as written by a terminal that tells keys apart, which then makes no signal of it.
bool TerminalInput::TakeInterrupt() {
  constexpr std::string_view kCodedInterrupt = "\x1b[99;5u";
  const std::size_t at = read_.find(kCodedInterrupt);
  if (at != std::string::npos) read_.erase(at, kCodedInterrupt.size());
  return at != std::string::npos;
}

bool TerminalInput::WaitForOrInterrupt(int descriptor, std::optional<std::chrono::milliseconds> most) {
  const auto until = Clock::now() + most.value_or(std::chrono::milliseconds(0));
  for (;;) {
    const bool reads = editor_ != nullptr && asks_for_keys != 0 && !ended_;
    std::array<pollfd, 3> waits = {pollfd{descriptor, POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                   pollfd{reads ? STDIN_FILENO : -1, POLLIN, 0}};
    const auto left =
        std::max<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count(), 0);
    const int ready = ::poll(waits.data(), waits.size(), most ? static_cast<int>(left) : -1);
    if (ready > 0 && waits[2].revents != 0) ReadMore();
    if (TakeInterrupt()) return true;
    const int number = ready > 0 && waits[1].revents != 0 ? TakeSignal() : 0;
    if (number == SIGTSTP) Suspend();
    if (number == SIGINT) return true;
    if (ready <= 0 || waits[0].revents != 0) return false;
  }
}

std::optional<std::string> TerminalInput::AskTerminal(std::string_view request) {
  constexpr std::chrono::seconds kMostWait{1};
  if (in_paste_) return std::nullopt;
  std::fflush(stdout);
  WriteToTerminal(request);
  for (const auto until = Clock::now() + kMostWait;;) {
    std::string answers, keys;
    bool is_whole = false;
    for (std::string_view rest = read_; !rest.empty();) {
      const auto key = FirstKey(rest, /*in_paste=*/false, /*no_more=*/true);
      const std::string_view bytes = rest.substr(0, key ? key->length : rest.size());
      const bool are_attributes = bytes.starts_with("\x1b[?") && bytes.ends_with('c');
      const bool is_answer = are_attributes || bytes.starts_with("\x1b_") || bytes.starts_with("\x1bP");
      (is_answer ? answers : keys) += bytes;
      is_whole = is_whole || are_attributes;
      rest.remove_prefix(bytes.size());
    }
    if (is_whole) {
      read_ = std::move(keys);
      return answers;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waits{STDIN_FILENO, POLLIN, 0};
    if (left <= 0 || ended_ || ::poll(&waits, 1, static_cast<int>(left)) <= 0 || !ReadMore()) return std::string();
  }
}

void TerminalInput::Lend(const std::function<void()>& use) {
  LeaveTerminal();
  use();
  ReturnToTerminal();
}

// Signals that came meanwhile, such as by Ctrl-C, were for the other program. Only the terminal's size is still news.
void TerminalInput::ReturnToTerminal() {
  HideTyping();
  bool resized = false;
  pollfd signals{signals_.get(), POLLIN, 0};
  while (::poll(&signals, 1, 0) > 0) resized = TakeSignal() == SIGWINCH || resized;
  if (resized) ::raise(SIGWINCH);
}

}  // namespace reprise
