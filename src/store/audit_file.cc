#include "store/audit_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "domain/json_reader.h"
#include "reprise/timestamp.h"
#include "store/file_names.h"
#include "store/record.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1024ULL * 1024 * 1024;
constexpr std::size_t kLongestName = 128;

constexpr const char* kNotWritten = "the audit log could not be written";

tl::unexpected<Error> FailErrno(const std::string& path, int error) {
  return Fail(SystemError(error, path, kNotWritten));
}

std::string_view NameOf(AuditEntry::Event event) {
  switch (event) {
    case AuditEntry::Event::kStarted:
      return "started";
    case AuditEntry::Event::kEnded:
      return "ended";
    case AuditEntry::Event::kApproved:
      return "approved";
    case AuditEntry::Event::kRejected:
      return "rejected";
    case AuditEntry::Event::kRefused:
      return "refused";
    case AuditEntry::Event::kPruned:
      return "pruned";
    case AuditEntry::Event::kConnected:
      return "connected";
    case AuditEntry::Event::kModeChanged:
      return "mode_changed";
    case AuditEntry::Event::kPortOpened:
      return "port_opened";
    case AuditEntry::Event::kPortClosed:
      return "port_closed";
    case AuditEntry::Event::kInstructionsChanged:
      return "instructions_changed";
    case AuditEntry::Event::kProviderConnected:
      return "provider_connected";
    case AuditEntry::Event::kProviderDisconnected:
      return "provider_disconnected";
    case AuditEntry::Event::kServerAdded:
      return "server_added";
    case AuditEntry::Event::kServerRemoved:
      return "server_removed";
    case AuditEntry::Event::kRuleAdded:
      return "rule_added";
    case AuditEntry::Event::kRuleRemoved:
      return "rule_removed";
  }
  return "refused";
}

// A model or a provider may send any text as a name, so text that does not look like a name is written as its digest.
std::string Name(const std::string& given) {
  const auto allowed = [](char c) { return IsToolNameCharacter(c) || c == '.' || c == ':'; };
  const bool plain = given.size() <= kLongestName && std::ranges::all_of(given, allowed);
  return plain ? given : Sha256Digest({given});
}

// The MAC is the line's last member, so that the bytes it covers can be cut out.
constexpr std::string_view kMacBegin = R"(,"mac":")", kMacEnd = R"("})";
constexpr std::size_t kMacSize = 12 + 64;  // "hmac-sha256:" and hex

std::string MacOf(const SecretKey& key, std::string_view line) { return HmacSha256(key, {"reprise/audit\n", line}); }

struct MacParts {
  std::string line;  // without the MAC
  std::string_view mac;
};
std::optional<MacParts> TakeMac(std::string_view line) {
  constexpr std::size_t kSize = kMacBegin.size() + kMacSize + kMacEnd.size();
  if (line.size() < kSize || !line.ends_with(kMacEnd)) return std::nullopt;
  const std::string_view tail = line.substr(line.size() - kSize);
  if (!tail.starts_with(kMacBegin)) return std::nullopt;
  return MacParts{.line = std::string(line.substr(0, line.size() - kSize)) + "}",
                  .mac = tail.substr(kMacBegin.size(), kMacSize)};
}

// --- the head --------------------------------------------------------------------------------------------------------

constexpr int kHeadSchema = 1;

tl::unexpected<Error> Damaged(const std::string& path, std::string_view kind, std::string_view what) {
  return Fail(LoneRecordDamage(path.substr(path.rfind('/') + 1), kind, what));
}

std::string HeadJson(const AuditHead& head) {
  Json json = {{"schema", kHeadSchema},
               {"count", head.count},
               {"last", head.last.empty() ? Json() : Json(head.last)},
               {"keyed_from", head.keyed_from},
               {"unproven", head.unproven}};
  if (head.key) json["key"] = EncodeBase64Url(head.key->bytes());
  return DumpJson(json);
}

AuditHead CopyOf(const AuditHead& head) {
  AuditHead copy{.count = head.count,
                 .last = head.last,
                 .keyed_from = head.keyed_from,
                 .unproven = head.unproven,
                 .key = std::nullopt};
  if (head.key) copy.key = head.key->Clone();
  return copy;
}

// 0 if this is not one of our lines.
std::uint64_t NumberOf(std::string_view line) {
  const auto json = ParseJson(line);
  if (!json || !json->is_object() || !json->contains("seq") || !json->at("seq").is_number_unsigned()) return 0;
  return json->at("seq").get<std::uint64_t>();
}

// The whole lines. Text after the last line feed is being written, or was when the power failed.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    lines.push_back(text.substr(0, end));
  }
  return lines;
}

// The files of a log, ordered by the numbers of their first lines; the last one grows.
using Files = std::vector<std::pair<std::uint64_t, std::string>>;
Result<Files> FilesOf(const std::string& root, FileSystem& file_system) {
  auto entries = TRY(file_system.ListDirectory(root));
  Files files;
  for (const DirectoryEntry& entry : entries) {
    const auto first = ParseAuditFile(entry.name);
    if (first && !entry.is_directory) files.emplace_back(*first, root + "/" + entry.name);
  }
  std::ranges::sort(files);
  return files;
}

// The index of the line after number `after`, computed from the first line's number. 0 where that does not work, for
// example because numbers are missing.
std::size_t IndexBehind(const std::vector<std::string_view>& lines, std::uint64_t after) {
  const std::uint64_t first = lines.empty() ? 0 : NumberOf(lines.front());
  if (first == 0 || after < first || after - first >= lines.size()) return 0;
  const std::size_t index = after - first;
  return NumberOf(lines[index]) == after ? index + 1 : 0;
}

struct Found {
  AuditLog::Page page;
  bool gap = false;  // lines are missing
};

Result<Found> ReadFiles(const Files& files, FileSystem& file_system, std::uint64_t after, std::size_t limit) {
  Found found;
  std::uint64_t last = after;
  for (std::size_t i = 0; i < files.size(); ++i) {
    // Every line of this file comes before the page.
    if (i + 1 < files.size() && files[i + 1].first <= after + 1 && after != 0) continue;
    const auto text = file_system.ReadFile(files[i].second, kMaxFileBytes);
    if (!text && IsNotFound(text.error())) {
      found.gap = true;
      continue;
    }
    if (!text) return Fail(text.error());
    const auto lines = LinesOf(*text);
    for (std::size_t k = IndexBehind(lines, after); k < lines.size(); ++k) {
      const std::uint64_t number = NumberOf(lines[k]);
      if (number <= after) continue;  // before the page, or damaged
      if (found.page.lines.size() == limit) {
        found.page.next = last;
        return found;
      }
      found.gap = found.gap || number != last + 1;
      last = number;
      found.page.lines.emplace_back(lines[k]);
    }
  }
  return found;
}

}  // namespace

Result<std::optional<AuditHead>> ReadAuditHead(const std::string& root, FileSystem& file_system, const KeySet* keys) {
  const std::string path = AuditHeadFile(root);
  auto text = TRY(ReadHeadFile(file_system, path, kAuditHeadType, keys));
  if (!text) return std::optional<AuditHead>();
  const auto json = ParseJson(*text);
  WipeBytes(text->data(), text->size());
  if (!json) return Damaged(path, "auth", "its content is not JSON");
  JsonReader reader(*json, "head of the audit log");
  if (reader.Integer("schema") != kHeadSchema && !reader.error()) {
    return Damaged(path, "version", "it was written by a version of this program that is not known here");
  }
  AuditHead head;
  const auto number = [&](const char* name) {
    const std::int64_t value = reader.Integer(name);
    if (value < 0) reader.Reject(name);
    return static_cast<std::uint64_t>(value);
  };
  head.count = number("count");
  head.last = reader.OptionalString("last").value_or("");
  head.keyed_from = number("keyed_from");
  head.unproven = number("unproven");
  if (keys != nullptr) {
    std::string encoded = reader.String("key");
    auto bytes = DecodeBase64Url(encoded);
    if (bytes) head.key = SecretKey::FromBytes(*bytes);
    if (bytes) WipeBytes(bytes->data(), bytes->size());
    WipeBytes(encoded.data(), encoded.size());
    if (!head.key) reader.Reject("key");
  }
  if (reader.error()) return Damaged(path, "auth", reader.error()->message);
  return std::optional(std::move(head));
}

Result<std::string> AuditHeadText(const AuditHead& head, const KeySet* keys) {
  std::string text = HeadJson(head);
  auto sealed = HeadText(kAuditHeadType, text, keys);
  WipeBytes(text.data(), text.size());
  return sealed;
}

Result<void> WriteAuditHead(const std::string& root, FileSystem& file_system, const KeySet* keys,
                            const AuditHead& head) {
  std::string text = HeadJson(head);
  auto written = WriteHeadFile(file_system, AuditHeadFile(root), kAuditHeadType, text, keys);
  WipeBytes(text.data(), text.size());
  return written;
}

std::string AuditLine(const AuditEntry& entry, std::uint64_t number, const std::string& previous,
                      const SecretKey* key) {
  Json line = {{"seq", number},
               {"at", FormatTimestamp(Now())},
               {"event", NameOf(entry.event)},
               {"chat_id", entry.chat_id},
               {"interaction_id", entry.interaction_id},
               {"call_id", Name(entry.call_id)},
               {"tool_name", Name(entry.tool_name)},
               {"arguments_digest", entry.arguments_digest}};
  if (!entry.of_call.empty()) line["of_call"] = Name(entry.of_call);
  if (!entry.reason.empty()) line["reason"] = entry.reason;
  if (!entry.approval_id.empty()) line["approval_id"] = entry.approval_id;
  if (!entry.decided_by.empty()) line["decided_by"] = entry.decided_by;
  if (!entry.answered_by.empty()) line["answered_by"] = entry.answered_by;
  if (entry.outside_sandbox) line["outside_sandbox"] = true;
  if (entry.event == AuditEntry::Event::kEnded) line["is_error"] = entry.is_error;
  if (entry.duration_ms) line["duration_ms"] = *entry.duration_ms;
  if (entry.exit_status) line["exit_status"] = *entry.exit_status;
  if (!entry.job_id.empty()) {
    line["job_id"] = entry.job_id;
    line["port"] = entry.port;
  }
  if (!entry.host.empty()) line["host"] = entry.host;
  if (entry.event == AuditEntry::Event::kConnected) {
    line["sent_bytes"] = entry.sent_bytes;
    line["received_bytes"] = entry.received_bytes;
  }
  line["previous"] = previous.empty() ? Json() : Json(previous);
  std::string text = DumpJson(line);
  if (key == nullptr) return text;
  const std::string mac = MacOf(*key, text);
  text.pop_back();
  return text.append(kMacBegin).append(mac).append(kMacEnd);
}

Result<void> CheckAuditEnd(const AuditHead& head, std::uint64_t last, const std::string& last_digest) {
  const std::string name = AuditLogFile("").substr(1);
  if (last < head.count) {
    return Fail(LoneRecordDamage(
        name, "missing",
        "it ends with line number " + std::to_string(last) + ", and had " + std::to_string(head.count)));
  }
  if (last == head.count && last_digest != head.last) {
    return Fail(LoneRecordDamage(name, "auth", "its last line is not what was written"));
  }
  return {};
}

AuditFile::AuditFile(std::string root, std::shared_ptr<const KeySet> keys, FileSystem& file_system, Settings settings)
    : root_(std::move(root)), keys_(std::move(keys)), file_system_(file_system), settings_(settings) {}

AuditFile::~AuditFile() {
  sealer_ = {};
  const bool sealed = [&] {
    const MutexLock lock(mutex_);
    return !seal_at_;
  }();
  if (sealed) return;
  if (const auto done = Seal(); !done) {
    LogError("the head of the audit log could not be written", {{"detail", done.error().detail}});
  }
}

// Finds the log's last line, in whichever file it is.
Result<void> AuditFile::FindEnd() {
  last_ = first_ = size_ = 0;
  last_digest_.clear();
  last_has_mac_ = false;
  auto files = TRY(FilesOf(root_, file_system_));
  for (auto file = files.rbegin(); file != files.rend() && last_ == 0; ++file) {
    const auto text = TRY(file_system_.ReadFile(file->second, kMaxFileBytes));
    const auto lines = LinesOf(text);
    const bool grows = file->second == AuditLogFile(root_);
    if (grows) size_ = lines.empty() ? 0 : static_cast<std::uint64_t>(lines.back().end() - text.data()) + 1;
    if (lines.empty()) continue;
    last_digest_ = Sha256Digest({lines.back()});
    last_has_mac_ = TakeMac(lines.back()).has_value();
    last_ = NumberOf(lines.back());
    // The last line is damaged, which verify reports. The numbers continue.
    if (last_ == 0) last_ = std::max<std::uint64_t>(NumberOf(lines.front()), 1) + lines.size() - 1;
    if (grows) first_ = last_ - lines.size() + 1;
  }
  return {};
}

Result<void> AuditFile::CheckEnd() {
  const MutexLock lock(mutex_);
  if (file_) return {};
  const auto head = TRY(ReadAuditHead(root_, file_system_, keys_.get()));
  TRY(FindEnd());
  if (head) return CheckAuditEnd(*head, last_, last_digest_);
  if (!keys_ || !last_has_mac_) return {};
  return Damaged(AuditHeadFile(root_), "missing", "the file is gone");
}

// If lines were cut off, the next one continues after the number and digest in the head, so that the gap shows.
Result<void> AuditFile::OpenHead(bool adopt) {
  if (!head_) {
    auto head = ReadAuditHead(root_, file_system_, keys_.get());
    if (!head && head.error().code != ErrorCode::kCorruption) return Fail(std::move(head.error()));
    const bool lost = !head || (!*head && keys_ && last_has_mac_);
    if (lost && !adopt) LogError("the head of the audit log is gone or damaged", {});
    if (!head) {
      TRY(file_system_.Rename(AuditHeadFile(root_), DamagedHeadFile(AuditHeadFile(root_))));
    } else if (*head) {
      head_ = *std::move(head);
    }
    if (!head_) {
      AuditHead first{.count = last_,
                      .last = last_digest_,
                      .keyed_from = last_ + 1,
                      .unproven = lost && !adopt ? last_ : 0,
                      .key = std::nullopt};
      if (keys_) first.key = SecretKey::Random();
      TRY(WriteAuditHead(root_, file_system_, keys_.get(), first));
      head_ = std::move(first);
    }
  }
  if (const auto end = CheckAuditEnd(*head_, last_, last_digest_); !end) {
    LogError("the audit log does not end where its head says", {{"error", end.error().message}});
    last_ = head_->count;
    last_digest_ = head_->last;
  }
  return {};
}

Result<void> AuditFile::Open() {
  TRY(FindEnd());
  const std::string path = AuditLogFile(root_);
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || ::fchmod(file.get(), 0600) != 0) return FailErrno(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return FailErrno(path, errno);
  if (static_cast<std::uint64_t>(status.st_size) != size_) {
    LogWarning("the audit log's last line was incomplete and is left out", {});
    if (::ftruncate(file.get(), static_cast<off_t>(size_)) != 0) return FailErrno(path, errno);
  }
  TRY(OpenHead(/*adopt=*/false));
  file_ = std::move(file);
  if (last_ != head_->count) SealLater();
  return {};
}

Result<void> AuditFile::Adopt() {
  const MutexLock lock(mutex_);
  TRY(FindEnd());
  return OpenHead(/*adopt=*/true);
}

// The lines are synced before the head that counts them, so that a power loss cannot take them.
Result<void> AuditFile::Seal() {
  const MutexLock sealing(seal_mutex_);
  AuditHead head;
  UniqueFd file;
  {
    const MutexLock lock(mutex_);
    seal_at_.reset();
    if (!file_ || !head_) return {};
    head = CopyOf(*head_);
    head.count = last_;
    head.last = last_digest_;
    file = UniqueFd(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    if (!file) {
      const int error = errno;
      SealLater();
      return FailErrno(AuditLogFile(root_), error);
    }
  }
  auto written = ::fsync(file.get()) == 0 ? Result<void>() : FailErrno(AuditLogFile(root_), errno);
  written = written.and_then([&] { return file_system_.SyncDirectory(root_); }).and_then([&] {
    return WriteAuditHead(root_, file_system_, keys_.get(), head);
  });
  const MutexLock lock(mutex_);
  if (written) {
    head_ = std::move(head);
  } else {
    SealLater();
  }
  return written;
}

void AuditFile::SealLater() {
  if (seal_at_) return;
  seal_at_ = std::chrono::steady_clock::now() + settings_.seal_after;
  if (sealer_.joinable()) return unsealed_.notify_all();
  try {
    sealer_ = std::jthread([this](const std::stop_token& stop) { KeepSealing(stop); });
  } catch (const std::system_error&) {  // no thread is left: the destructor seals
  }
}

void AuditFile::KeepSealing(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  for (;;) {
    if (!unsealed_.wait(lock, stop, [this]() REQUIRES(mutex_) { return seal_at_.has_value(); })) return;
    const auto due = *seal_at_;
    unsealed_.wait_until(lock, stop, due, [] { return false; });
    if (stop.stop_requested()) return;
    lock.unlock();
    Guarded("the sealing of the audit log", [this] {
      if (const auto sealed = Seal(); !sealed) {
        LogError("the head of the audit log could not be written", {{"detail", sealed.error().detail}});
      }
    });
    lock.lock();
  }
}

// Renames a file that has grown too large to its number and begins a new one.
Result<void> AuditFile::MakeRoom() {
  if (first_ == 0 || size_ < settings_.max_bytes) return {};
  if (::fsync(file_.get()) != 0) return FailErrno(AuditLogFile(root_), errno);
  TRY(file_system_.Rename(AuditLogFile(root_), AuditLogFile(root_, first_)));
  file_.Reset();
  const std::string path = AuditLogFile(root_);
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || ::fchmod(file.get(), 0600) != 0) return FailErrno(path, errno);
  file_ = std::move(file);
  size_ = first_ = 0;
  return {};
}

Result<void> AuditFile::Write(const std::string& line) {
  const std::string path = AuditLogFile(root_);
  ssize_t written = -1;
  do written = ::write(file_.get(), line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return {};
  auto failed = FailErrno(path, written < 0 ? errno : ENOSPC);
  // A partial line would be taken for damage.
  if (written > 0 && ::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) file_.Reset();
  return failed;
}

Result<void> AuditFile::Append(const AuditEntry& entry) {
  const MutexLock lock(mutex_);
  if (!file_) {
    TRY(Open());
  }
  TRY(MakeRoom());
  const std::string line = AuditLine(entry, last_ + 1, last_digest_, head_->key ? &*head_->key : nullptr);
  TRY(Write(line + "\n"));
  last_digest_ = Sha256Digest({line});
  ++last_;
  if (first_ == 0) first_ = last_;
  size_ += line.size() + 1;
  SealLater();
  return {};
}

Result<AuditLog::Page> AuditFile::Read(std::uint64_t after, std::size_t limit) const {
  return ReadAuditPage(ReadAuditHead(root_, file_system_, keys_.get()), after, limit, keys_ != nullptr,
                       [this](std::uint64_t from, std::size_t most) { return ReadLines(from, most); });
}

Result<AuditLog::Page> AuditFile::ReadLines(std::uint64_t after, std::size_t limit) const {
  auto files = FilesOf(root_, file_system_);
  for (;;) {
    if (!files) return Fail(files.error());
    auto found = TRY(ReadFiles(*files, file_system_, after, limit));
    if (!found.gap) return std::move(found.page);
    // Either lines are gone, or a file was renamed to its number meanwhile and so was missed.
    auto files_now = FilesOf(root_, file_system_);
    if (files_now && *files_now == *files) return std::move(found.page);
    files = std::move(files_now);
  }
}

namespace {

// Checks lines one after the other, against each other and against a head that was read before them.
class AuditChain {
 public:
  AuditChain(Result<std::optional<AuditHead>> head, bool sealed) : sealed_(sealed), has_head_(head.has_value()) {
    if (head) {
      head_ = *std::move(head);
      return;
    }
    const bool damaged = head.error().code == ErrorCode::kCorruption;
    constexpr std::string_view kPrefix = "integrity_";
    Complain(HeadName(), damaged ? head.error().reason.substr(kPrefix.size()) : "auth", head.error().message);
  }

  // The next lines follow this one, which has this number; empty: it is missing.
  void BeginBehind(std::uint64_t number, std::string_view line) {
    last_ = number;
    last_digest_ = Sha256Digest({line});
    before_is_damaged_ = line.empty();
  }

  void Line(const std::string& file, std::string_view line) {
    const auto json = ParseJson(line);
    const std::uint64_t number = NumberOf(line);
    const std::string expected = "line number " + std::to_string(last_ + 1);
    const bool linked =
        json && json->is_object() && json->contains("previous") &&
        (before_is_damaged_ || json->at("previous") == (last_digest_.empty() ? Json() : Json(last_digest_)));
    before_is_damaged_ = false;
    if (number == 0 || !IsOurs(number, line)) {
      Complain(file, "auth", expected + " is not what was written");
      before_is_damaged_ = number != 0;  // the next line's link would only repeat this
    } else if (number > last_ + 1) {
      Complain(file, "missing", LinesAreGone(last_ + 1, number - 1));
    } else if (number <= last_ || !linked) {
      Complain(file, "auth", "what stands before " + expected + " is not what was written");
    }
    last_ = number == 0 ? last_ + 1 : number;
    last_digest_ = Sha256Digest({line});
  }

  // Call it after the last line of the log.
  void End() {
    const std::string file = AuditLogFile("").substr(1);
    if (head_ && last_ < head_->count) Complain(file, "missing", LinesAreGone(last_ + 1, head_->count));
    if (head_ && head_->unproven > 0) {
      Complain(file, "missing",
               "what the lines up to number " + std::to_string(head_->unproven) + " were known by is gone");
    }
    if (sealed_ && has_head_ && !head_ && has_mac_) Complain(HeadName(), "missing", "the file is gone");
  }

  void Complain(std::string file, std::string kind, std::string what) {
    problems_.push_back({.file = std::move(file), .kind = std::move(kind), .message = std::move(what)});
  }
  std::vector<Problem> TakeProblems() { return std::move(problems_); }

 private:
  static std::string HeadName() { return AuditHeadFile("").substr(1); }
  static std::string LinesAreGone(std::uint64_t from, std::uint64_t to) {
    return "the lines from number " + std::to_string(from) + " to " + std::to_string(to) + " are gone";
  }

  // As far as the line alone can show.
  bool IsOurs(std::uint64_t number, std::string_view line) {
    const auto parts = TakeMac(line);
    has_mac_ = has_mac_ || parts;
    if (!head_) return true;
    if (number == head_->count && Sha256Digest({line}) != head_->last) return false;
    if (!head_->key || number < head_->keyed_from) return true;
    return parts && parts->mac == MacOf(*head_->key, parts->line);
  }

  const bool sealed_, has_head_;
  std::optional<AuditHead> head_;
  std::uint64_t last_ = 0;
  std::string last_digest_;
  bool has_mac_ = false, before_is_damaged_ = false;
  std::vector<Problem> problems_;
};

// Checks all lines of a log once.
std::vector<Problem> LookAt(const std::string& root, const KeySet* keys, FileSystem& file_system) {
  AuditChain chain(ReadAuditHead(root, file_system, keys), keys != nullptr);
  const auto files = FilesOf(root, file_system);
  if (!files) return {};  // the folder's own problem
  for (const auto& [first, path] : *files) {
    const auto text = file_system.ReadFile(path, kMaxFileBytes);
    const std::string name = path.substr(root.size() + 1);
    if (!text) {
      chain.Complain(name, "missing", "the file cannot be read: " + text.error().message);
      continue;
    }
    for (const std::string_view line : LinesOf(*text)) chain.Line(name, line);
  }
  chain.End();
  return chain.TakeProblems();
}

}  // namespace

Result<AuditLog::Page> ReadAuditPage(
    Result<std::optional<AuditHead>> head, std::uint64_t after, std::size_t limit, bool sealed,
    const std::function<Result<AuditLog::Page>(std::uint64_t after, std::size_t limit)>& read) {
  auto page = TRY(read(after, limit));
  AuditChain chain(std::move(head), sealed);
  if (after > 0) {
    const auto before = TRY(read(after - 1, 1));
    const std::string_view line = before.lines.empty() ? std::string_view() : before.lines.front();
    chain.BeginBehind(after, NumberOf(line) == after ? line : "");
  }
  for (const std::string& line : page.lines) chain.Line(AuditLogFile("").substr(1), line);
  if (!page.next) chain.End();
  for (Problem& problem : chain.TakeProblems()) {
    page.problems.push_back({.kind = std::move(problem.kind), .message = std::move(problem.message)});
  }
  return page;
}

void VerifyAudit(const std::string& root, const KeySet* keys, FileSystem& file_system, VerifyReport& report) {
  auto found = LookAt(root, keys, file_system);
  // A server may have begun a new file meanwhile.
  if (!found.empty()) found = LookAt(root, keys, file_system);
  std::move(found.begin(), found.end(), std::back_inserter(report.problems));
}

}  // namespace reprise
