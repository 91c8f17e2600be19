#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/chat_bucket.h"
#include "app/keys.h"
#include "base/json.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "domain/transcript/transcript.h"
#include "store/audit_file.h"
#include "store/chat_files.h"
#include "store/file_names.h"
#include "store/verify.h"
#include "terminal/console.h"
#include "terminal/progress.h"

namespace reprise {
namespace {

// The keys and the bucket for opening files.
struct Access {
  std::shared_ptr<const KeySet> keys;
  const FileBucket* bucket;  // null if there is none
};

// Verifies a chat of the data folder, if `what` is its id, else a file or a chat's folder.
Result<VerifyReport> Verify(const std::string& what, const Options& options, const ChatSource& source,
                            const Access& access, WorkCounter& counter) {
  if (auto reference = ParseReference(what)) {
    auto found = FindRecord(what, IdsIn(source.root(), source.file_system(), FullPath(options.data_dir)));
    if (!found && found.error().code == ErrorCode::kConflict && !IsFile(what)) return Fail(std::move(found.error()));
    if (found) reference = *std::move(found);
    auto report =
        reference->interaction
            ? VerifyFile(InteractionFile(source.root(), reference->chat, *reference->interaction), access.keys,
                         source.file_system(), &counter, access.bucket)
            : VerifyChat(source.root(), reference->chat, access.keys, source.file_system(), &counter, access.bucket);
    if (report || report.error().code != ErrorCode::kNotFound) return report;
    if (!IsFile(what) && !IsDirectory(what)) {
      Error missing = NotThere(report.error(), *reference, options.data_dir);
      missing.message += ", and there is no file of that name";
      return Fail(std::move(missing));
    }
  }
  if (!IsDirectory(what)) {
    auto report = VerifyFile(what, access.keys, Disk(), &counter, access.bucket);
    if (report || report.error().code != ErrorCode::kNotFound) return report;
    return Fail(ErrorCode::kNotFound, "there is no file " + what);
  }
  const auto place = ParseStorePath(what);
  if (!place)
    return Fail(ErrorCode::kInvalidArgument, what + " is not a chat's folder (--data-dir names a data folder)");
  return VerifyChat(place->root, place->chat, access.keys, Disk(), &counter, access.bucket);
}

// The number of files of the named chats, or of all if none is named; 0 if an argument is a path, or chats are rows.
std::uint64_t FilesToCheck(const CommandLine& line, const Options& options) {
  if (options.store.type != StoreOptions::Type::kFiles) return 0;
  std::vector<ChatId> chats;
  for (const std::string& what : line.arguments) {
    const auto reference = ParseReference(what);
    if (!reference) return 0;
    chats.push_back(reference->chat);
  }
  if (line.arguments.empty()) {
    auto all = ChatFiles(options.data_dir, MakeRecordFormat(nullptr), Disk()).ListChats();
    if (all) chats = *std::move(all);
  }
  const StoredCount count = CountStored(options.data_dir, chats);
  return count.chats + count.interactions + count.journals + count.files;
}

// The users of a database, with their audit logs, which are listed nowhere else.
Result<void> VerifyUsers(const ChatSource& source, const Access& access, WorkCounter& counter, VerifyReport& whole) {
  for (const ChatSource::OfUser& each : TRY(source.OfUsers(access.keys.get()))) {
    const std::string place = each.user.org + "/" + each.user.user;
    if (!each.keys) {
      whole.problems.push_back(
          {place, each.keys.error().reason.substr(std::string_view("integrity_").size()), each.keys.error().message});
      continue;
    }
    auto report = TRY(VerifyStore(source.root(), *each.keys, *each.files, &counter, access.bucket));
    whole.checked += report.checked;
    for (Problem& problem : report.problems) {
      problem.file = place + "/" + problem.file;
      whole.problems.push_back(std::move(problem));
    }
  }
  return {};
}

// A name that cannot be checked does not stop the others: it goes to `failed`.
Result<VerifyReport> VerifyAll(const CommandLine& line, const Options& options, const Access& access,
                               WorkCounter& counter, std::vector<Error>& failed) {
  const ChatSource source = TRY(ChatSource::Open(options));
  if (line.arguments.empty()) {
    auto report = VerifyStore(source.root(), access.keys, source.file_system(), &counter, access.bucket);
    if (report) TRY(VerifyUsers(source, access, counter, *report));
    if (report || report.error().code != ErrorCode::kNotFound) return report;
    return Fail(NoDataFolder(options.data_dir));
  }
  VerifyReport whole;
  for (const std::string& what : line.arguments) {
    auto report = Verify(what, options, source, access, counter);
    if (!report && report.error().code == ErrorCode::kCancelled) return report;
    if (!report) {
      failed.push_back(std::move(report.error()));
      continue;
    }
    whole.checked += report->checked;
    std::move(report->problems.begin(), report->problems.end(), std::back_inserter(whole.problems));
  }
  return whole;
}

void PrintReport(const VerifyReport& report, bool ok, bool json) {
  if (json) {
    Json problems = Json::array();
    for (const Problem& problem : report.problems) {
      problems.push_back({{"file", problem.file}, {"kind", problem.kind}, {"message", problem.message}});
    }
    PrintDocument({{"ok", ok}, {"checked", report.checked}, {"problems", std::move(problems)}});
    return;
  }
  for (const Problem& problem : report.problems) {
    Print(VisibleLine(problem.file) + ": " + problem.kind + ": " + VisibleLine(problem.message) + "\n");
  }
  const std::size_t count = report.problems.size();
  Print(CountOf(report.checked, "file") + " checked, " + (count == 0 ? "all in order" : CountOf(count, "problem")) +
        "\n");
}

}  // namespace

Exited RunVerify(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto keys = TRY(KeysFor(options));
  WorkCounter counter;
  Progress progress(counter, environment);
  const std::uint64_t total = progress.is_shown() ? FilesToCheck(line, options) : 0;
  progress.Begin({.doing = "checking", .things = "files", .total = total});
  const auto bucket = ChatBucket::OpenToRead(options, counter.stop_token());
  std::vector<Error> failed;
  const auto report = VerifyAll(line, options, {keys, FilesOf(bucket)}, counter, failed);
  progress.End();
  if (!report) return Complain(report.error());
  for (const Error& error : failed) Complain(error);
  const bool ok = report->problems.empty() && failed.empty();
  const bool is_none = failed.size() == line.arguments.size() && !failed.empty();
  if (!is_none) PrintReport(*report, ok, line.json);
  return ok ? kExitOk : kExitFailure;
}

namespace {

constexpr std::size_t kPage = 1000;

// 2025-01-15 10:00:00  demo/int_001  ended     run_shell (call_1): ok, 12 ms, exit status 0
std::string ForReading(const std::string& line) {
  const auto entry = ParseJson(line);
  if (!entry || !entry->is_object()) return VisibleLine(line) + "\n";
  const auto text = [&](const char* key) {
    return entry->contains(key) && entry->at(key).is_string() ? entry->at(key).get<std::string>() : std::string();
  };
  const auto number = [&](const char* key) { return entry->contains(key) ? DumpJson(entry->at(key)) : std::string(); };
  constexpr std::size_t kEventWidth = 8;
  std::string event = text("event");
  event.resize(std::max(event.size(), kEventWidth), ' ');
  std::string more = text("reason");
  if (text("event") == "ended") {
    more = (number("is_error") == "true" ? "error, " : "ok, ") + number("duration_ms") + " ms";
    if (entry->contains("exit_status")) more += ", exit status " + number("exit_status");
  }
  if (text("event") == "connected") {
    more = text("host") + ", " + number("sent_bytes") + " bytes sent, " + number("received_bytes") + " received";
  }
  if (!text("job_id").empty()) {
    more = text("job_id") + ", port " + number("port") + (text("host").empty() ? "" : " at " + text("host"));
  }
  const auto at = ParseTimestamp(text("at"));
  std::string out = (at ? FormatForReading(*at) : text("at")) + "  ";
  if (text("chat_id").empty()) return VisibleLine(out + "the server  " + event + "  " + text("tool_name")) + "\n";
  out += text("chat_id") + "/" + text("interaction_id") + "  " + event + "  " + text("tool_name") + " (" +
         text("call_id") + ")";
  if (!more.empty()) out += ": " + more;
  return VisibleLine(out) + "\n";
}

}  // namespace

Exited RunAudit(const CommandLine& line, const Environment& environment) {
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  // The lines are readable without a key, so a failure here does not stop the command.
  const auto keys = KeysFor(options);
  const auto source = TRY(ChatSource::Open(options));
  const AuditFile log(source.root(), nullptr, source.file_system());
  std::uint64_t after = 0;
  for (;;) {
    const auto page = log.Read(after, kPage);
    if (!page && page.error().code == ErrorCode::kNotFound) {
      return Complain(NoDataFolder(options.data_dir));
    }
    if (!page) return Complain(page.error());
    for (const std::string& entry : page->lines) Print(line.json ? entry + "\n" : ForReading(entry));
    if (!page->next) break;
    after = *page->next;
  }
  if (!FlushOutput()) return kExitFailure;
  if (!keys) {
    Warn("whether lines were changed or cut off was not checked: " + keys.error().message);
    return kExitOk;
  }
  VerifyReport report;
  VerifyAudit(source.root(), keys->get(), source.file_system(), report);
  for (const Problem& problem : report.problems) {
    Complain(MakeError(ErrorCode::kCorruption, problem.file + ": " + problem.kind + ": " + problem.message));
  }
  return report.problems.empty() ? kExitOk : kExitFailure;
}

}  // namespace reprise
