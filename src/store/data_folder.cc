#include "store/data_folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/atomic_write.h"
#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "store/chat_files.h"
#include "store/file_names.h"
#include "store/record.h"

namespace reprise {

namespace {

bool IsSafe(const struct stat& status) {
  const bool ours = status.st_uid == ::geteuid() || status.st_uid == 0;
  const bool open_to_all =
      S_ISDIR(status.st_mode) && (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
  return ours && !open_to_all;
}

}  // namespace

Result<void> CheckPrivateDirectory(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT && ParentDirectory(path) != path) return CheckPrivateDirectory(ParentDirectory(path));
    return Fail(SystemError(errno, path, "the folder cannot be looked at"));
  }
  if (!IsSafe(status)) {
    return Fail(Reason::kFolderNotPrivate, "another user could change what is stored there", path);
  }
  const std::string parent = ParentDirectory(path);
  if (parent == path || parent == ".") return {};
  return CheckPrivateDirectory(parent);
}

Result<void> ProbeFolder(FileSystem& file_system, const std::string& folder) {
  constexpr std::size_t kBytes = 16 * 1024;
  const std::string path = folder + "/.probe." + RandomHex(8) + ".tmp";  // a temporary name, which is never read
  auto file = TRY(file_system.CreateFile(path));
  auto written = file->Append(std::string(kBytes, '\0'));
  if (written) written = file->Sync();
  const auto closed = file->Close();
  if (written) written = closed;
  const auto removed = file_system.RemoveFile(path);
  return written ? removed : written;
}

namespace {

tl::unexpected<Error> FailErrno(const std::string& path) {
  return Fail(SystemError(errno, path, "the data folder cannot be locked"));
}

// "PID\nURL\n" or a part of it; our URLs are far shorter.
constexpr std::size_t kMaxText = 512;

std::string ReadText(int fd) {
  std::array<char, kMaxText> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

std::string PidIn(const std::string& text) { return {text.begin(), std::ranges::find_if_not(text, IsAsciiDigit)}; }

// Empty if there is no whole line with a URL.
std::string UrlIn(const std::string& text) {
  const std::size_t begin = PidIn(text).size() + 1;
  const std::size_t end = text.find('\n', std::min(begin, text.size()));
  if (begin > text.size() || text[begin - 1] != '\n' || end == std::string::npos) return {};
  std::string url = text.substr(begin, end - begin);
  const bool plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c <= '~'; });
  return plain && url.starts_with("http://") ? url : std::string();
}

Error Locked(int fd, const std::string& path) {
  const std::string pid = PidIn(ReadText(fd));
  return Refused(Reason::kStoreLocked,
                 "another server" + (pid.empty() ? "" : " (process " + pid + ")") + " uses this data folder", path);
}

// Whether this is a lock file, and not another one under its name (a hard link, perhaps), whose content would be lost.
bool IsLockFile(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) return false;
  const std::string text = ReadText(fd);
  if (static_cast<off_t>(text.size()) != status.st_size) return false;
  const std::string url = UrlIn(text);
  const std::string rest = text.substr(0, text.size() - (url.empty() ? 0 : url.size() + 1));
  return std::ranges::all_of(rest, [](char c) { return IsAsciiDigit(c) || c == '\n'; });
}

// For people and clients only: the lock does not depend on it, so a full disk must not keep the server from starting.
void WriteText(int fd, const std::string& text) {
  const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
  [[maybe_unused]] const int cut = ::ftruncate(fd, std::max<ssize_t>(written, 0));
}

std::string OwnPid() { return std::to_string(::getpid()) + "\n"; }

// Retries while other processes only ask whether the lock is held (FindHolder): each holds a shared lock for a moment,
// which may be long on a busy machine.
bool TakeLock(int fd) {
  constexpr std::chrono::seconds kPatience{2};
  constexpr std::chrono::microseconds kPause{100};
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK || ::flock(fd, LOCK_SH | LOCK_NB) != 0) return false;
    ::flock(fd, LOCK_UN);
    if (std::chrono::steady_clock::now() > until) break;
    std::this_thread::sleep_for(kPause);
  }
  errno = EWOULDBLOCK;
  return false;
}

// A second lock, on one byte, is held while the file names no URL. It is not taken if a waiting process holds it just
// then; waiters then find the old text.
constexpr off_t kSettling = 0;

int ByteLock(int fd, int command, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = kSettling;
  range.l_len = 1;
  return ::fcntl(fd, command, &range);
}

extern "C" void NothingAtAll(int) {}

// Calls `lock`, which waits in the kernel without a limit, until it succeeds (true) or until the deadline, when a
// signal to this thread interrupts it.
template <typename Lock>
bool DoneBy(DirectoryLock::Clock::time_point deadline, Lock lock) {
  struct sigaction act {
  }, before{};
  act.sa_handler = NothingAtAll;  // without SA_RESTART
  ::sigaction(SIGALRM, &act, &before);
  sigset_t alarm, mask;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, &mask);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGALRM;
  event._sigev_un._tid = ::gettid();
  timer_t timer{};
  bool done = false;
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
    const auto left =
        std::max(std::chrono::nanoseconds(1),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - DirectoryLock::Clock::now()));
    // Repeated, because the first signal may come before the call has begun.
    const itimerspec times{
        .it_interval = {.tv_sec = 0, .tv_nsec = 10'000'000},
        .it_value = {.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000}};
    ::timer_settime(timer, 0, &times, nullptr);
    int failed = 0;
    do {
      failed = lock();
    } while (failed != 0 && errno == EINTR && DirectoryLock::Clock::now() < deadline);
    done = failed == 0;
    ::timer_delete(timer);
  }
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  return done;
}

UniqueFd OpenToAsk(const std::string& lock_file) {
  return UniqueFd(::open(lock_file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

bool DirectoryLock::AwaitSettled(const std::string& lock_file, Clock::time_point deadline) {
  const UniqueFd file = OpenToAsk(lock_file);
  return !file || DoneBy(deadline, [&] { return ByteLock(file.get(), F_OFD_SETLKW, F_RDLCK); });
}

bool DirectoryLock::AwaitRelease(const std::string& lock_file, Clock::time_point deadline) {
  const UniqueFd file = OpenToAsk(lock_file);
  return !file || DoneBy(deadline, [&] { return ::flock(file.get(), LOCK_SH); });
}

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::Acquire(const std::string& lock_file) {
  UniqueFd file(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!file) return FailErrno(lock_file);
  const int fd = file.get();
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(std::move(file)));
  if (!TakeLock(fd)) {
    if (errno == EWOULDBLOCK) return Fail(Locked(fd, lock_file));
    return FailErrno(lock_file);
  }
  if (!IsLockFile(fd)) return lock;
  lock->is_lock_file_ = true;
  if (::fchmod(fd, 0600) != 0) return FailErrno(lock_file);
  ByteLock(fd, F_OFD_SETLK, F_WRLCK);
  WriteText(fd, OwnPid());
  return lock;
}

Result<std::optional<DirectoryLock::Holder>> DirectoryLock::FindHolder(const std::string& lock_file) {
  const UniqueFd file = OpenToAsk(lock_file);
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  struct stat status {};
  if (file.get() < 0 && errno != ELOOP) return FailErrno(lock_file);
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Fail(Reason::kIntegrityMissing, "something that is no file is in the place of the data folder's lock",
                lock_file);
  }
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  if (errno != EWOULDBLOCK) return FailErrno(lock_file);
  const std::string text = ReadText(file.get());
  return Holder{.pid = PidIn(text), .url = UrlIn(text)};
}

void DirectoryLock::NoteUrl(std::string_view url) {
  if (!is_lock_file_) return;
  WriteText(fd_.get(), OwnPid() + std::string(url) + "\n");
  ByteLock(fd_.get(), F_OFD_SETLK, F_UNLCK);
}

DirectoryLock::~DirectoryLock() {
  if (!is_lock_file_) return;
  ByteLock(fd_.get(), F_OFD_SETLK, F_WRLCK);
  WriteText(fd_.get(), OwnPid());  // without the URL
}

namespace {

constexpr int kNoteSchema = 1;
constexpr std::uint64_t kMaxNote = 1 << 20;

std::optional<std::set<std::string>> Names(const Json& json, const char* member) {
  std::set<std::string> names;
  const auto list = json.find(member);
  if (list == json.end() || !list->is_array()) return std::nullopt;
  for (const Json& name : *list) {
    if (!name.is_string()) return std::nullopt;
    names.insert(name.get<std::string>());
  }
  return names;
}

// nullopt if the file is missing or unreadable. That is no damage, because it can be rebuilt from the chats.
std::optional<FolderKeys> ReadNote(const std::string& root, FileSystem& file_system) {
  const auto text = file_system.ReadFile(SealedByFile(root), kMaxNote);
  if (!text) return std::nullopt;
  const auto json = ParseJson(*text);
  if (!json || !json->is_object() || json->value("schema", Json()) != kNoteSchema) return std::nullopt;
  const auto plain = json->find("plain");
  auto sealing = Names(*json, "keys"), given_up = Names(*json, "given_up");
  if (plain == json->end() || !plain->is_boolean() || !sealing || !given_up) return std::nullopt;
  return FolderKeys{.plain = plain->get<bool>(), .sealing = *std::move(sealing), .given_up = *std::move(given_up)};
}

std::string NoteText(const FolderKeys& note) {
  return DumpJson(Json{
             {"schema", kNoteSchema}, {"plain", note.plain}, {"keys", note.sealing}, {"given_up", note.given_up}}) +
         "\n";
}

// Finds the key that a chat is sealed by: its id, "" if the chat is plain, nullopt if no file tells.
class ChatLook {
 public:
  ChatLook(const std::string& root, FileSystem& file_system)
      : root_(root), files_(root, MakeRecordFormat(nullptr), file_system), file_system_(file_system) {}

  Result<std::vector<ChatId>> Chats() const {
    auto chats = files_.ListChats();
    if (!chats && IsNotFound(chats.error())) return std::vector<ChatId>();
    return chats;
  }
  std::optional<std::string> SealedBy(const ChatId& chat) const {
    if (auto by = FileSealedBy(ChatFile(root_, chat))) return by;
    const auto listed = files_.ListInteractions(chat);
    if (!listed) return std::nullopt;
    for (const std::uint32_t number : listed->checkpoints) {
      if (auto by = FileSealedBy(InteractionFile(root_, chat, InteractionId::FromNumber(number)))) return by;
    }
    for (const std::uint32_t number : listed->journals) {
      if (auto by = FileSealedBy(JournalPath(root_, chat, InteractionId::FromNumber(number)))) return by;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> FileSealedBy(const std::string& path) const {
    const auto text = file_system_.ReadFile(path, kMaxRecordBytes);
    return text ? reprise::SealedBy(*text) : std::nullopt;
  }

  const std::string& root_;
  const ChatFiles files_;
  FileSystem& file_system_;
};

bool Has(const KeySet* keys, const std::string& kid) { return keys != nullptr && keys->Find(kid) != nullptr; }

std::string Count(std::size_t chats) { return std::to_string(chats) + (chats == 1 ? " chat" : " chats"); }
std::string AreOrIs(std::size_t chats) { return chats == 1 ? " is " : " are "; }

}  // namespace

std::optional<std::string> SealedBy(std::string_view record) {
  if (auto kid = KeyIdOf(record)) return kid;
  const std::string_view first_line = record.substr(0, record.find('\n'));  // of a journal
  if (auto kid = KeyIdOf(first_line)) return kid;
  const auto json = ParseJson(first_line, 2 * kMaxJsonDepth);
  return json && json->is_object() && !json->contains("ciphertext") ? std::optional<std::string>("") : std::nullopt;
}

void CountChat(FolderKeys& found, const std::string& sealed_by, const KeySet* keys) {
  ++(sealed_by.empty() ? found.plain_chats : found.sealed_chats);
  if (sealed_by.empty()) return;
  if (Has(keys, sealed_by)) {
    found.sealing.insert(sealed_by);
  } else if (!found.given_up.contains(sealed_by)) {
    ++found.missing[sealed_by];
  }
}

Result<FolderKeys> ReadFolderKeys(const std::string& root, FolderMode mode, const KeySet* keys,
                                  FileSystem& file_system) {
  const auto note = ReadNote(root, file_system);
  FolderKeys found = note.value_or(FolderKeys{});
  bool known = note.has_value() && found.plain == (mode == FolderMode::kPlain);
  for (const std::string& kid : found.sealing) known = known && Has(keys, kid);
  if (known) return found;

  const ChatLook look(root, file_system);
  const auto chats = TRY(look.Chats());
  found.sealing.clear();
  found.looked = true;
  for (const ChatId& chat : chats) {
    const auto by = look.SealedBy(chat);
    if (by) CountChat(found, *by, keys);
  }
  return found;
}

std::set<std::string> GivenUpKeys(const std::string& root, FileSystem& file_system) {
  return ReadNote(root, file_system).value_or(FolderKeys{}).given_up;
}

Result<void> CheckFolderKeys(const FolderKeys& found, FolderMode mode, const std::string& root,
                             const std::string& key_file) {
  if (mode == FolderMode::kPlain) {
    if (found.sealed_chats == 0 || found.plain_chats > 0) return {};
    return Fail(Reason::kSealedFolder, Count(found.sealed_chats) + " in " + root + AreOrIs(found.sealed_chats) +
                                           "sealed: leave --plain out, or `reprise decrypt --all --in-place` first");
  }
  if (found.plain_chats > 0 && found.sealed_chats == 0) {
    return Fail(Reason::kPlainFolder,
                Count(found.plain_chats) + " in " + root + AreOrIs(found.plain_chats) +
                    "stored unencrypted: give --plain, or `reprise encrypt --all --in-place` first");
  }
  if (found.missing.empty()) return {};
  std::size_t chats = 0;
  std::string kids;
  for (const auto& [kid, count] : found.missing) {
    chats += count;
    kids += (kids.empty() ? "" : ", ") + kid;
  }
  return Fail(Reason::kMissingKey,
              Count(chats) + " in " + root + AreOrIs(chats) + "sealed with " + kids + ", which is not in " + key_file +
                  ": put the key file back (or name it with --key-file), or give those chats up with " +
                  "`reprise serve --new-key`");
}

Result<void> NoteFolderKeys(const FolderKeys& found, const std::string& root, const KeySet* keys,
                            FileSystem& file_system) {
  FolderKeys note{.plain = keys == nullptr, .sealing = found.sealing, .given_up = {}};
  if (keys != nullptr) note.sealing.insert(keys->current().kid);
  for (const std::string& kid : found.given_up) {
    if (!Has(keys, kid)) note.given_up.insert(kid);
  }
  if (keys != nullptr) {
    for (const auto& [kid, count] : found.missing) note.given_up.insert(kid);
  }
  const std::string text = NoteText(note);
  const auto there = file_system.ReadFile(SealedByFile(root), kMaxNote);
  if (there && *there == text) return {};
  // As long as there are no chats, the first file may be lost in a power loss.
  const bool is_new = !there && found.plain_chats + found.sealed_chats == 0 && note.given_up.empty();
  if (is_new) return ReplaceFile(file_system, SealedByFile(root), text, Durability::kUnsynced);
  return ReplaceFile(file_system, SealedByFile(root), text).and_then([&] { return file_system.SyncDirectory(root); });
}

}  // namespace reprise
