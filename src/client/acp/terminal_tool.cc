#include "client/acp/terminal_tool.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace reprise::acp {
namespace {

constexpr int kMostOutput = 64 << 10;  // the client keeps the last bytes

// How a command has failed, for the model; empty if it succeeded.
std::string Ending(const Json& status) {
  const Json& code = MemberOf(status, "exitCode");
  if (const std::string signal = TextMember(status, "signal"); !signal.empty()) return "ended by " + signal;
  return code.is_number_integer() && code != 0 ? "exit status " + code.dump() : "";
}

// Releases the terminal without waiting for the responses.
void End(SessionClient& client, const std::string& session, const std::string& terminal, bool kill) {
  const Json named = {{"sessionId", session}, {"terminalId", terminal}};
  const auto ignore = [](const Json&) {};
  if (kill) client.Ask("terminal/kill", named, ignore);
  client.Ask("terminal/release", named, ignore);
}

}  // namespace

Json TerminalTool::Offer() {
  return {{"name", kName},
          {"description",
           "Runs a command in the user's own terminal, where they see it: outside the sandbox, with their environment "
           "and their network. Use run_shell, unless the command needs what the sandbox does not have."},
          {"input_schema",
           {{"type", "object"},
            {"properties", {{"command", {{"type", "string"}, {"description", "a command line for sh"}}}}},
            {"required", Json::array({"command"})},
            {"additionalProperties", false}}},
          {"server", "its terminal, outside the sandbox"},
          {"any_arguments", false}};
}

int TerminalTool::Ask(const char* method, const std::string& terminal, SessionClient::Answered answered) {
  return client_.Ask(method, {{"sessionId", session_}, {"terminalId", terminal}}, std::move(answered));
}

void TerminalTool::Call(const std::string& id, const Json& arguments, Shown shown, Done done) {
  const auto running = running_[id] = std::make_shared<Running>();
  running->shown = std::move(shown);
  running->done = std::move(done);
  // A cancelled call, whose tool may be gone too, still ends its terminal, because the client creates it anyway.
  running->request = client_.Ask(
      "terminal/create",
      {{"sessionId", session_},
       {"command", "/bin/sh"},
       {"args", {"-c", TextMember(arguments, "command")}},
       {"cwd", cwd_},
       {"outputByteLimit", kMostOutput}},
      [this, id, call = std::weak_ptr(running), &client = client_, session = session_](const Json& response) {
        if (!call.expired()) return Created(id, response);
        const std::string terminal = TextMember(MemberOf(response, "result"), "terminalId");
        if (!terminal.empty()) End(client, session, terminal, /*kill=*/true);
      });
}

void TerminalTool::Created(const std::string& id, const Json& response) {
  const std::string terminal = TextMember(MemberOf(response, "result"), "terminalId");
  if (terminal.empty()) return Fail(id, response);
  Running& running = *running_[id];
  running.terminal = terminal;
  running.shown(terminal);
  running.request = Ask("terminal/wait_for_exit", terminal, [this, id](const Json& exited) { Exited(id, exited); });
}

void TerminalTool::Exited(const std::string& id, const Json& response) {
  if (response.contains("error")) return Fail(id, response);
  Running& running = *running_[id];
  running.request =
      Ask("terminal/output", running.terminal,
          [this, id, status = MemberOf(response, "result")](const Json& output) { Finished(id, status, output); });
}

void TerminalTool::Finished(const std::string& id, const Json& status, const Json& response) {
  if (response.contains("error")) return Fail(id, response);
  const Json& result = MemberOf(response, "result");
  std::string output = MemberOf(result, "truncated") == true ? "(the beginning is cut off)\n" : "";
  output += TextMember(result, "output");
  const std::string ending = Ending(status);
  if (!ending.empty()) output += (output.empty() || output.ends_with('\n') ? "(" : "\n(") + ending + ")";
  const auto running = running_.extract(id);
  End(client_, session_, running.mapped()->terminal, /*kill=*/false);
  running.mapped()->done({{"output", output}, {"is_error", !ending.empty()}});
}

void TerminalTool::Fail(const std::string& id, const Json& response) {
  const auto running = running_.extract(id);
  const std::string why = TextMember(MemberOf(response, "error"), "message");
  if (!running.mapped()->terminal.empty()) End(client_, session_, running.mapped()->terminal, /*kill=*/true);
  running.mapped()->done({{"error", why.empty() ? "the terminal does not say what became of it" : why}});
}

// If the terminal is not created yet, it is ended when it is.
void TerminalTool::Cancel(const std::string& id) {
  const auto running = running_.extract(id);
  if (running.empty() || running.mapped()->terminal.empty()) return;
  client_.Withdraw(running.mapped()->request);
  End(client_, session_, running.mapped()->terminal, /*kill=*/true);
}

void TerminalTool::CancelAll() {
  while (!running_.empty()) Cancel(std::string(running_.begin()->first));
}

}  // namespace reprise::acp
