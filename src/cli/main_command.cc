#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "app/process.h"
#include "app/settings.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "terminal/console.h"

namespace reprise {
namespace {

constexpr std::pair<std::string_view, CommandFunction*> kCommands[] = {
    {"serve", RunServe},
    {"chat", RunChat},
    {"acp", RunBridge},
    {"mcp-server", RunBridge},
    {"ls", RunLs},
    {"cat", RunCat},
    {"show", RunShow},
    {"replay", RunReplay},
    {"test", RunTest},
    {"what-if", RunWhatIf},
    {"bisect", RunBisect},
    {"verify", RunVerify},
    {"audit", RunAudit},
    {"export", RunExport},
    {"prove", RunProve},
    {"import", RunImport},
    {"search", RunSearch},
    {"blame", RunBlame},
    {"rules try", RunRulesTry},
    {"rules suggest", RunRulesSuggest},
    {"rm", RunRm},
    {"restore", RunRestore},
    {"mv", RunMv},
    {"fork", RunFork},
    {"approvals", RunApprovals},
    {"models", RunModels},
    {"encrypt", RunConvert},
    {"decrypt", RunConvert},
    {"keys init", RunKeysInit},
    {"keys list", RunKeysList},
    {"keys rotate", RunKeysRotate},
    {"keys rewrap", RunKeysRewrap},
    {"keys passphrase", RunKeysPassphrase},
    {"files sweep", RunFilesSweep},
    {"files push", RunFilesMove},
    {"files pull", RunFilesMove},
    {"db init", RunDbMake},
    {"db migrate", RunDbMake},
    {"db status", RunDbStatus},
    {"doctor", RunDoctor},
    {"trust", RunTrust},
    {"users token add", RunTokenAdd},
    {"users token list", RunTokenList},
    {"users token revoke", RunTokenRevoke},
    {"users org delete", RunOrgDelete},
    {"mcp add", RunMcpAdd},
    {"mcp list", RunMcpList},
    {"mcp login", RunMcpLogin},
    {"mcp logout", RunMcpLogout},
    {"mcp test", RunMcpTest},
    {"completion", RunCompletion},
    {"man", RunMan},
};

// `serve` logs them and `doctor` lists them. `man` reads no variable, and `completion` must not print at a TAB.
bool WarnsOfVariables(std::string_view command) {
  return command != "serve" && command != "doctor" && command != "man" && command != "completion";
}

int Dispatch(const CommandLine& line) {
  HideMemory();  // any command may hold keys
  if (WarnsOfVariables(line.command)) {
    for (const std::string& unknown : UnknownVariables(environ)) Warn(unknown);
  }
  for (const auto& [name, run] : kCommands) {
    if (name == line.command) return StatusOf(run(line, ProcessEnvironment()));
  }
  return Complain(MakeError(ErrorCode::kInternal, "the command " + line.command + " is not wired in"));
}

}  // namespace

int StatusOf(const Exited& exited) {
  if (exited) return *exited;
  Complain(exited.error().error);
  return exited.error().status;
}

void PrintDocument(const Json& document) { Print(DumpJson(document) + "\n"); }

int PrintEither(bool json, const Json& document, const std::string& words) {
  json ? PrintDocument(document) : Print(words);
  return kExitOk;
}

int RunMain(int argc, const char* const* argv) {
  const auto parsed = ParseCommandLine(argc, argv);
  const auto* const exit = std::get_if<EarlyExit>(&parsed);
  if (exit != nullptr) std::fputs(exit->text.c_str(), exit->status == kExitOk ? stdout : stderr);
  const int status = exit != nullptr ? exit->status : Dispatch(std::get<CommandLine>(parsed));
  if (!FlushOutput()) return Complain(MakeError(ErrorCode::kIo, "the output could not be written"));
  return status;
}

}  // namespace reprise
