#include "cli/verify_command.h"

#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/chat_reader.h"
#include "cli/console.h"
#include "cli/terminal_text.h"
#include "store/file_names.h"
#include "store/verify.h"

namespace reprise {
namespace {

using Keys = std::shared_ptr<const KeySet>;

// What a chat's id names in the data folder, else a file or a chat's folder.
Result<VerifyReport> Verify(const std::string& what, const Options& options, const Keys& keys) {
  if (const auto reference = ParseReference(what)) {
    auto report =
        reference->interaction
            ? VerifyFile(InteractionFile(options.data_dir, reference->chat, *reference->interaction), keys, Disk())
            : VerifyChat(options.data_dir, reference->chat, keys, Disk());
    if (report || report.error().code != ErrorCode::kNotFound) return report;
    if (!IsFile(what) && !IsDirectory(what)) {
      return Fail(ErrorCode::kNotFound, "there is neither a chat nor a file " + what);
    }
  }
  if (!IsDirectory(what)) return VerifyFile(what, keys, Disk());
  const auto place = ParseStorePath(what);
  if (!place)
    return Fail(ErrorCode::kInvalidArgument, what + " is not a chat's folder (--data-dir names a data folder)");
  return VerifyChat(place->root, place->chat, keys, Disk());
}

Result<VerifyReport> VerifyAll(const CommandLine& line, const Options& options, const Keys& keys) {
  if (line.arguments.empty()) {
    auto report = VerifyStore(options.data_dir, keys, Disk());
    if (report || report.error().code != ErrorCode::kNotFound) return report;
    return Fail(ErrorCode::kNotFound, "there is no data folder " + options.data_dir);
  }
  VerifyReport whole;
  for (const std::string& what : line.arguments) {
    auto report = Verify(what, options, keys);
    if (!report && report.error().code == ErrorCode::kNotFound) {
      return Fail(ErrorCode::kNotFound, "there is neither a chat nor a file " + what);
    }
    if (!report) return report;
    whole.checked += report->checked;
    std::move(report->problems.begin(), report->problems.end(), std::back_inserter(whole.problems));
  }
  return whole;
}

void PrintReport(const VerifyReport& report, bool json) {
  if (json) {
    Json problems = Json::array();
    for (const Problem& problem : report.problems) {
      problems.push_back({{"file", problem.file}, {"kind", problem.kind}, {"message", problem.message}});
    }
    Print(DumpJson(
              Json{{"ok", report.problems.empty()}, {"checked", report.checked}, {"problems", std::move(problems)}}) +
          "\n");
    return;
  }
  for (const Problem& problem : report.problems) {
    Print(VisibleLine(problem.file) + ": " + problem.kind + ": " + VisibleLine(problem.message) + "\n");
  }
  const std::string checked =
      std::to_string(report.checked) + (report.checked == 1 ? " file" : " files") + " checked, ";
  const std::size_t count = report.problems.size();
  Print(checked +
        (count == 0 ? "all in order\n" : std::to_string(count) + (count == 1 ? " problem\n" : " problems\n")));
}

}  // namespace

int RunVerify(const CommandLine& line, const Environment& environment) {
  const auto options = LoadOptions(line.flags, environment);
  if (!options) return ComplainOfUse(options.error());
  const auto keys = KeysFor(*options);
  if (!keys) return Complain(keys.error());
  const auto report = VerifyAll(line, *options, *keys);
  if (!report) return Complain(report.error());
  PrintReport(*report, line.json);
  return report->problems.empty() ? kExitOk : kExitFailure;
}

}  // namespace reprise
