#include "store/audit_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/logging.h"
#include "crypto/digest.h"
#include "reprise/timestamp.h"
#include "store/file_names.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1024ULL * 1024 * 1024;
constexpr std::size_t kLongestName = 128;

tl::unexpected<Error> FailErrno(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return Fail(full ? ErrorCode::kStorageFull : ErrorCode::kIo, "the audit log could not be written",
              path + ": " + std::generic_category().message(error));
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
  }
  return "refused";
}

// Names that a model or a provider has made up may say anything: what does not look like a name is written as digest.
std::string Name(const std::string& given) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == ':';
  };
  const bool plain = given.size() <= kLongestName && std::all_of(given.begin(), given.end(), allowed);
  return plain ? given : Sha256Digest({given});
}

std::string LineOf(const AuditEntry& entry, std::uint64_t number, const std::string& previous) {
  Json line = {{"seq", number},
               {"at", FormatTimestamp(Now())},
               {"event", NameOf(entry.event)},
               {"chat_id", entry.chat_id},
               {"interaction_id", entry.interaction_id},
               {"call_id", Name(entry.call_id)},
               {"tool_name", Name(entry.tool_name)},
               {"arguments_digest", entry.arguments_digest}};
  if (!entry.reason.empty()) line["reason"] = entry.reason;
  if (!entry.approval_id.empty()) line["approval_id"] = entry.approval_id;
  if (entry.event == AuditEntry::Event::kEnded) line["is_error"] = entry.is_error;
  if (entry.duration_ms) line["duration_ms"] = *entry.duration_ms;
  if (entry.exit_status) line["exit_status"] = *entry.exit_status;
  line["previous"] = previous.empty() ? Json() : Json(previous);
  return DumpJson(line);
}

// 0 if the line is none of ours.
std::uint64_t NumberOf(std::string_view line) {
  const auto json = ParseJson(line);
  if (!json || !json->is_object() || !json->contains("seq") || !json->at("seq").is_number_unsigned()) return 0;
  return json->at("seq").get<std::uint64_t>();
}

// Whole lines; what stands behind the last line feed is being written, or was when the power went.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    lines.push_back(text.substr(0, end));
  }
  return lines;
}

// The files of a log in their order, by the numbers of their first lines; the last is the one that grows.
using Files = std::vector<std::pair<std::uint64_t, std::string>>;
Result<Files> FilesOf(const std::string& root, FileSystem& file_system) {
  auto entries = file_system.ListDirectory(root);
  if (!entries) return Fail(std::move(entries.error()));
  Files files;
  for (const DirectoryEntry& entry : *entries) {
    const auto first = ParseAuditFile(entry.name);
    if (first && !entry.is_directory) files.emplace_back(*first, root + "/" + entry.name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Where the lines behind number `after` begin. Numbers have no gaps, so the first line's tells; where they have, at the
// beginning.
std::size_t IndexBehind(const std::vector<std::string_view>& lines, std::uint64_t after) {
  const std::uint64_t first = lines.empty() ? 0 : NumberOf(lines.front());
  if (first == 0 || after < first || after - first >= lines.size()) return 0;
  const std::size_t index = after - first;
  return NumberOf(lines[index]) == after ? index + 1 : 0;
}

struct Found {
  AuditLog::Page page;
  bool gap = false;  // lines are not there that should be
};

Result<Found> ReadFiles(const Files& files, FileSystem& file_system, std::uint64_t after, std::size_t limit) {
  Found found;
  std::uint64_t last = after;
  for (std::size_t i = 0; i < files.size(); ++i) {
    // All of it comes before.
    if (i + 1 < files.size() && files[i + 1].first <= after + 1 && after != 0) continue;
    const auto text = file_system.ReadFile(files[i].second, kMaxFileBytes);
    if (!text && text.error().code == ErrorCode::kNotFound) {
      found.gap = true;
      continue;
    }
    if (!text) return Fail(text.error());
    const auto lines = LinesOf(*text);
    for (std::size_t k = IndexBehind(lines, after); k < lines.size(); ++k) {
      const std::uint64_t number = NumberOf(lines[k]);
      if (number <= after) continue;  // or damaged
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

AuditFile::AuditFile(std::string root, FileSystem& file_system, std::uint64_t max_bytes)
    : root_(std::move(root)), file_system_(file_system), max_bytes_(max_bytes) {}

Result<void> AuditFile::Open() {
  auto files = FilesOf(root_, file_system_);
  if (!files) return Fail(std::move(files.error()));
  // The last line there is, wherever it stands.
  for (auto file = files->rbegin(); file != files->rend() && last_ == 0; ++file) {
    const auto text = file_system_.ReadFile(file->second, kMaxFileBytes);
    if (!text) return Fail(text.error());
    const auto lines = LinesOf(*text);
    const bool grows = file->second == AuditLogFile(root_);
    if (grows) size_ = lines.empty() ? 0 : static_cast<std::uint64_t>(lines.back().end() - text->data()) + 1;
    if (lines.empty()) continue;
    last_digest_ = Sha256Digest({lines.back()});
    last_ = NumberOf(lines.back());
    // A line that was damaged: verify says so. The numbers go on.
    if (last_ == 0) last_ = std::max<std::uint64_t>(NumberOf(lines.front()), 1) + lines.size() - 1;
    if (grows) first_ = last_ - lines.size() + 1;
  }
  const std::string path = AuditLogFile(root_);
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || ::fchmod(file.get(), 0600) != 0) return FailErrno(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return FailErrno(path, errno);
  if (static_cast<std::uint64_t>(status.st_size) != size_) {
    LogWarning("the audit log's last line was not whole and is left out", {});
    if (::ftruncate(file.get(), static_cast<off_t>(size_)) != 0) return FailErrno(path, errno);
  }
  file_ = std::move(file);
  return {};
}

// The file that has grown too large gets its number, and a new one begins.
Result<void> AuditFile::MakeRoom() {
  if (first_ == 0 || size_ < max_bytes_) return {};
  if (auto renamed = file_system_.Rename(AuditLogFile(root_), AuditLogFile(root_, first_)); !renamed) return renamed;
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
  // Half a line would be taken for damage.
  if (written > 0 && ::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) file_.Reset();
  return failed;
}

Result<void> AuditFile::Append(const AuditEntry& entry) {
  const std::lock_guard lock(mutex_);
  if (!file_) {
    last_ = first_ = size_ = 0;
    last_digest_.clear();
    if (auto opened = Open(); !opened) return opened;
  }
  if (auto room = MakeRoom(); !room) return room;
  const std::string line = LineOf(entry, last_ + 1, last_digest_);
  if (auto written = Write(line + "\n"); !written) return written;
  last_digest_ = Sha256Digest({line});
  ++last_;
  if (first_ == 0) first_ = last_;
  size_ += line.size() + 1;
  return {};
}

Result<AuditLog::Page> AuditFile::Read(std::uint64_t after, std::size_t limit) const {
  auto files = FilesOf(root_, file_system_);
  for (;;) {
    if (!files) return Fail(files.error());
    auto found = ReadFiles(*files, file_system_, after, limit);
    if (!found) return Fail(found.error());
    if (!found->gap) return std::move(found->page);
    // Either lines are gone, or a file has got its number meanwhile and was passed over.
    auto files_now = FilesOf(root_, file_system_);
    if (files_now && *files_now == *files) return std::move(found->page);
    files = std::move(files_now);
  }
}

namespace {

void CheckChain(const std::string& root, FileSystem& file_system, VerifyReport& report) {
  const auto files = FilesOf(root, file_system);
  if (!files) return;  // the folder's own problem
  std::uint64_t last = 0;
  std::string last_digest;
  for (const auto& [first, path] : *files) {
    const auto text = file_system.ReadFile(path, kMaxFileBytes);
    const std::string name = path.substr(root.size() + 1);
    const auto complain = [&](const char* kind, const std::string& what) {
      report.problems.push_back({.file = name, .kind = kind, .message = what});
    };
    if (!text) {
      complain("missing", "the file cannot be read: " + text.error().message);
      continue;
    }
    for (const std::string_view line : LinesOf(*text)) {
      const auto json = ParseJson(line);
      const std::uint64_t number = NumberOf(line);
      const std::string expected = "line number " + std::to_string(last + 1);
      const bool linked = json && json->is_object() && json->contains("previous") &&
                          json->at("previous") == (last_digest.empty() ? Json() : Json(last_digest));
      if (number == 0) {
        complain("auth", expected + " is not what was written");
      } else if (number > last + 1) {
        complain("missing", "the lines from number " + std::to_string(last + 1) + " to " + std::to_string(number - 1) +
                                " are gone");
      } else if (number <= last || !linked) {
        complain("auth", "what stands before " + expected + " is not what was written");
      }
      last = number == 0 ? last + 1 : number;
      last_digest = Sha256Digest({line});
    }
  }
}

}  // namespace

void VerifyAudit(const std::string& root, FileSystem& file_system, VerifyReport& report) {
  VerifyReport found;
  CheckChain(root, file_system, found);
  // A server may have begun a new file just then.
  if (!found.problems.empty()) {
    found = {};
    CheckChain(root, file_system, found);
  }
  std::move(found.problems.begin(), found.problems.end(), std::back_inserter(report.problems));
}

}  // namespace reprise
