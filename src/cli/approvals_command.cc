#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "client/server_access.h"
#include "domain/transcript/transcript.h"
#include "terminal/console.h"

namespace reprise {
namespace {

std::string WhereOf(const Json& asked) {
  return VisibleLine(TextMember(asked, "chat_id") + "/" + TextMember(asked, "interaction_id"));
}

std::string Since(const Json& asked) {
  const auto created = ParseTimestamp(TextMember(asked, "created_at"));
  return created ? "  since " + FormatForReading(*created) : "";
}

// Prints an approval with all hidden characters spelled out.
void PrintApproval(const Json& asked) {
  const std::string id = VisibleLine(TextMember(asked, "approval_id"));
  std::string text = id + "  " + WhereOf(asked) + Since(asked) + "\n  " + VisibleLine(TextMember(asked, "tool_name")) +
                     "  (risk: " + VisibleLine(TextMember(asked, "risk")) + ")\n    " +
                     VisibleText(WithoutGaps(TextMember(asked, "tool_input")), "    ") + "\n";
  if (const std::string reason = TextMember(asked, "reason"); !reason.empty())
    text += "  " + VisibleLine(reason) + "\n";
  const Json& allowed = MemberOf(asked, "allowed_decisions");
  const bool may_leave = std::find(allowed.begin(), allowed.end(), kApproveOutside) != allowed.end();
  if (may_leave) text += "  outside: the call reaches all your files, the network and your secrets\n";
  Print(text + "  answer: reprise approvals " + id + " yes|no" + (may_leave ? "|outside" : "") + "\n");
}

void PrintInput(const Json& asked) {
  Print(VisibleLine(TextMember(asked, "request_id")) + "  " + WhereOf(asked) + Since(asked) + "\n  " +
        VisibleText(TextMember(asked, "question"), "  ") + "\n  answer: reprise chat " +
        VisibleLine(TextMember(asked, "chat_id")) + "\n");
}

int PrintWaiting(const Json& waiting) {
  const Json &approvals = ListedIn(waiting, "approvals"), &inputs = ListedIn(waiting, "inputs");
  if (approvals.empty() && inputs.empty()) Print("nothing waits for you\n");
  bool first = true;
  const auto apart = [&first] {
    if (!first) Print("\n");
    first = false;
  };
  for (const Json& asked : approvals) apart(), PrintApproval(asked);
  for (const Json& asked : inputs) apart(), PrintInput(asked);
  return kExitOk;
}

bool IsId(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

Error NoSuchApproval(const std::string& id, const ServerClient& server) {
  return MakeError(ErrorCode::kNotFound,
                   "there is no approval " + id + " at " + server.url() + " (`reprise approvals` lists what waits)");
}

int AnswerApproval(ServerClient& server, const CommandLine& line, const Json& waiting) {
  const std::string& id = line.argument;
  for (const Json& asked : ListedIn(waiting, "inputs")) {
    if (TextMember(asked, "request_id") != id) continue;
    return Misused(id + " is a question, not an approval: `reprise chat " + TextMember(asked, "chat_id") +
                   "` answers it");
  }
  Json shown;
  for (const Json& asked : ListedIn(waiting, "approvals")) {
    if (TextMember(asked, "approval_id") == id) shown = asked;
  }
  Json body = {{"approved", line.answer != "no"}};
  if (line.answer == "outside") body["outside_sandbox"] = true;
  if (!line.feedback.empty()) body["feedback"] = line.feedback;
  if (!line.scope.empty()) body["scope"] = line.scope;
  if (const std::string digest = TextMember(shown, "arguments_digest"); !digest.empty())
    body["arguments_digest"] = digest;
  const auto answered = server.Call("POST", "/approvals/" + id, body);
  if (!answered && answered.error().Is(Reason::kNotFound)) return Complain(NoSuchApproval(id, server));
  if (!answered && answered.error().Is(Reason::kAlreadyProcessed)) {
    return Complain(MakeError(ErrorCode::kConflict, id + " was answered before, or its interaction has ended"));
  }
  if (!answered) return Complain(NotAnswering(answered.error(), server));
  if (line.json) return PrintDocument(*answered), kExitOk;
  std::string text = line.answer == "no"    ? "rejected"
                     : line.answer == "yes" ? "approved"
                                            : "approved outside the sandbox";
  if (shown.is_object()) text += ": " + VisibleLine(TextMember(shown, "tool_name")) + " in " + WhereOf(shown);
  Print(text + "\n");
  return kExitOk;
}

}  // namespace

Exited RunApprovals(const CommandLine& line, const Environment& environment) {
  const bool answers = !line.answer.empty();
  if (!line.argument.empty() && !answers) {
    return Misused("yes or no is missing: reprise approvals " + line.argument + " yes|no|outside");
  }
  if (!answers && !(line.feedback.empty() && line.scope.empty())) {
    return Misused("--feedback and --scope go with an answer: reprise approvals APPROVAL yes|no");
  }
  if (answers && line.answer != "yes" && !line.scope.empty()) {
    return Misused("--scope goes with yes: " + line.answer + " is for this call");
  }
  if (ToValidUtf8(line.feedback) != line.feedback) return Misused("--feedback is not UTF-8");
  const auto options = TRY(OfUse(LoadOptions(line.flags, environment)));
  const auto server = TRY(OfUse(OpenServer(line.url, options, environment)));
  if (!server) {
    return Complain(MakeError(ErrorCode::kUnavailable,
                              "no server uses the data folder " + FullPath(options.data_dir) +
                                  ", and only a server's runs wait (`reprise serve` takes up what waited before)"));
  }
  if (answers && !IsId(line.argument)) return Complain(NoSuchApproval(line.argument, *server));
  const auto waiting = server->Call("GET", "/approvals");
  if (!waiting) return Complain(NotAnswering(waiting.error(), *server));
  if (answers) return AnswerApproval(*server, line, *waiting);
  if (line.json) return PrintDocument(*waiting), kExitOk;
  return PrintWaiting(*waiting);
}

}  // namespace reprise
