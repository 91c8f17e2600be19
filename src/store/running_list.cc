#include "store/running_list.h"

#include <string_view>

#include "base/atomic_write.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxBytes = 64u << 20;
// The file is begun anew when it has this many lines, most of them of what has ended.
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
  if (!text) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::string_view rest = *text;
  for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    if (end == 0) continue;
    const auto entry = ParseEntry(rest.substr(1, end - 1));
    if (!entry) {
      running_.clear();
      return std::nullopt;
    }
    rest.front() == '+' ? void(running_.insert(*entry)) : void(running_.erase(*entry));
  }
  return running_;
}

void RunningList::Adopt(const std::vector<Entry>& found, bool all) {
  const std::lock_guard lock(mutex_);
  running_.insert(found.begin(), found.end());
  complete_ = all;
}

Result<void> RunningList::Begin(const ChatId& chat, InteractionId interaction) {
  const std::lock_guard lock(mutex_);
  running_.emplace(chat, interaction);
  return Write(Line('+', {chat, interaction}));
}

void RunningList::End(const ChatId& chat, InteractionId interaction) {
  const std::lock_guard lock(mutex_);
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

// The file of the last process is replaced at once by one that says what is running now.
Result<void> RunningList::StartFile() {
  std::string lines = complete_ ? "" : "?\n";
  for (const Entry& entry : running_) lines += Line('+', entry);
  auto file = AtomicFile::Create(file_system_, path_).and_then([&](AtomicFile made) { return made.CommitOpen(lines); });
  if (!file) return Fail(std::move(file.error()));
  file_ = *std::move(file);
  lines_ = running_.size();
  name_durable_ = false;
  return {};
}

Result<void> RunningList::Sync() {
  const std::lock_guard lock(mutex_);
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
