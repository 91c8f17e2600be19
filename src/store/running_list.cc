#include "store/running_list.h"

#include <algorithm>
#include <string_view>

#include "base/atomic_write.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxBytes = 64u << 20;
// The file is rewritten when it has this many lines, most of them of ended interactions.
constexpr std::size_t kMaxLines = 20'000;

std::string Line(char sign, const RunningList::Entry& entry) {
  return std::string(1, sign) + entry.first.str() + " " + entry.second.str() + "\n";
}

std::optional<RunningList::Entry> ParseEntry(std::string_view text) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto chat = ChatId::Parse(text.substr(0, blank));
  const auto interaction = InteractionId::Parse(text.substr(blank + 1));
  if (!chat || !interaction) return std::nullopt;
  return RunningList::Entry(*chat, *interaction);
}

}  // namespace

std::optional<std::set<RunningList::Entry>> RunningList::ReadLast() {
  const auto text = file_system_.ReadFile(path_, kMaxBytes);
  const MutexLock lock(mutex_);
  was_read_ = true;
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    const bool begins = rest.starts_with('+');
    const auto entry = begins || rest.starts_with('-') ? ParseEntry(rest.substr(1, end - 1)) : std::nullopt;
    if (!entry) break;
    const bool fits = begins ? running_.insert(*entry).second : running_.erase(*entry) > 0;
    if (!fits) break;
  }
  // A list has at least one line, and only whole ones, each for a beginning or its end. Anything else is damage.
  const bool whole = !text->empty() && rest.empty();
  if (whole && std::includes(running_.begin(), running_.end(), noticed_.begin(), noticed_.end())) return running_;
  running_.clear();
  return std::nullopt;
}

bool RunningList::Notice(const ChatId& chat, InteractionId interaction) {
  const MutexLock lock(mutex_);
  if (!was_read_) {
    noticed_.emplace(chat, interaction);
    return false;
  }
  if (!running_.emplace(chat, interaction).second) return false;
  static_cast<void>(Write(Line('+', {chat, interaction})));
  return true;
}

void RunningList::Adopt(const std::vector<Entry>& found, bool all) {
  const MutexLock lock(mutex_);
  running_ = std::set<Entry>(found.begin(), found.end());
  complete_ = all;
}

std::size_t RunningList::count() {
  const MutexLock lock(mutex_);
  return running_.size();
}

Result<void> RunningList::Begin(const ChatId& chat, InteractionId interaction) {
  const MutexLock lock(mutex_);
  const bool is_new = running_.emplace(chat, interaction).second;
  if (!is_new && file_) return {};  // a run that continues after a restart is in the file
  return Write(Line('+', {chat, interaction}));
}

void RunningList::End(const ChatId& chat, InteractionId interaction) {
  const MutexLock lock(mutex_);
  if (running_.erase({chat, interaction}) == 0) return;
  static_cast<void>(Write(Line('-', {chat, interaction})));
}

Result<void> RunningList::Write(const std::string& lines) {
  if (!file_ || lines_ >= kMaxLines + 2 * running_.size()) return StartFile();
  auto written = file_->Append(lines);
  ++lines_;
  if (!written) file_.reset();
  return written;
}

// Atomically replaces the file, perhaps the last process's, by one that lists the interactions running now.
Result<void> RunningList::StartFile() {
  std::string lines = complete_ ? "" : "?\n";
  for (const Entry& entry : running_) lines += Line('+', entry);
  auto file =
      TRY(AtomicFile::Create(file_system_, path_).and_then([&](AtomicFile made) { return made.CommitOpen(lines); }));
  file_ = std::move(file);
  lines_ = running_.size();
  name_durable_ = false;
  return {};
}

Result<void> RunningList::Sync() {
  const MutexLock lock(mutex_);
  if (!file_) return Fail(ErrorCode::kIo, "the list of what is running could not be written");
  if (auto synced = file_->Sync(); !synced) {
    file_.reset();
    return synced;
  }
  if (name_durable_) return {};
  auto synced = file_system_.SyncDirectory(ParentDirectory(path_));
  name_durable_ = synced.has_value();
  return synced;
}

}  // namespace reprise
