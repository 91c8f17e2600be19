#include <nlohmann/json.hpp>
#include <string>

#include "app/keys.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "client/archive/chat_reader.h"
#include "domain/transcript/transcript.h"
#include "store/audit_file.h"
#include "terminal/console.h"

namespace reprise {
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
  std::string out = (at ? FormatForReading(*at) : text("at")) + "  " + text("chat_id") + "/" + text("interaction_id") +
                    "  " + event + "  " + text("tool_name") + " (" + text("call_id") + ")";
  if (!more.empty()) out += ": " + more;
  return VisibleLine(out) + "\n";
}

}  // namespace

int RunAudit(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  // The lines are readable without a key, so a failure here does not stop the command.
  const auto keys = KeysFor(*options);
  const auto source = ChatSource::Open(*options);
  if (!source) return Complain(source.error());
  const AuditFile log(source->root(), nullptr, source->file_system());
  std::uint64_t after = 0;
  for (;;) {
    const auto page = log.Read(after, kPage);
    if (!page && page.error().code == ErrorCode::kNotFound) {
      return Complain(NoDataFolder(options->data_dir));
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
  VerifyAudit(source->root(), keys->get(), source->file_system(), report);
  for (const Problem& problem : report.problems) {
    Complain(MakeError(ErrorCode::kCorruption, problem.file + ": " + problem.kind + ": " + problem.message));
  }
  return report.problems.empty() ? kExitOk : kExitFailure;
}

}  // namespace reprise
