#include "cli/grader.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/shell/command_runner.h"

namespace reprise {
namespace {

constexpr std::size_t kMostOutput = 64 * 1024, kShownOutput = 200;
constexpr std::uint64_t kMemory = 1ull << 30;
constexpr std::uint64_t kFile = 16ull << 20;

// What a program printed, in one line; empty: nothing.
std::string Said(const std::string& output) {
  const std::string line(Trimmed(output));
  return line.empty() ? line : ": " + Shortened(line, kShownOutput);
}

}  // namespace

Grader::Grader(std::string folder)
    : folder_(std::move(folder)),
      sandbox_({.workspace = {}, .readable_paths = {folder_}, .limits = {.processes = 64, .tmp_mb = 64}}) {}

std::string Grader::Judge(const CommandCheck& check, const std::string& turn, const std::stop_token& stop) const {
  const std::string& program = check.argv.front();
  if (const Sandbox::State state = sandbox_.state(); !state.missing.empty()) {
    return program + " was not run, because there is no whole sandbox here: " + state.missing;
  }
  Command command{.argv = {"/bin/sh", "-c", R"(cd -- "$0" && exec "$@")", folder_},
                  .environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + sandbox_.home()},
                  .directory = "/",
                  .input = turn,
                  .memory_bytes = kMemory,
                  .file_bytes = kFile,
                  .confined = true};
  command.argv.insert(command.argv.end(), check.argv.begin(), check.argv.end());
  const std::chrono::milliseconds timeout(static_cast<std::int64_t>(check.seconds * 1000));
  const auto result =
      RunCommand(sandbox_.Confined(std::move(command)), {.timeout = timeout, .max_output_bytes = kMostOutput}, stop);
  if (!result) return program + " could not be run: " + result.error().message;
  switch (result->end) {
    case CommandResult::End::kExited:
      if (result->status == 0) return {};
      return program + " exits with " + std::to_string(result->status) + Said(result->output);
    case CommandResult::End::kSignalled:
      return program + " was ended by signal " + std::to_string(result->status) + Said(result->output);
    case CommandResult::End::kTimedOut:
      return program + " took longer than its time" + Said(result->output);
    case CommandResult::End::kCancelled:
      return program + " was interrupted";
  }
  return program;
}

}  // namespace reprise
