#include "approval/audit_lines.h"

#include <utility>

#include "domain/codec.h"

namespace reprise::audit {
namespace {

AuditEntry LineOf(AuditEntry::Event event, const ToolCall& call, const std::string& arguments,
                  std::string approval_id = {}) {
  return {.event = event,
          .call_id = call.id,
          .tool_name = call.name,
          .arguments_digest = ArgumentsDigest(arguments),
          .approval_id = std::move(approval_id)};
}

}  // namespace

AuditEntry Started(const ToolCall& call, const std::string& arguments, const Decision::Run& permission,
                   const std::string& approval_id) {
  AuditEntry line = LineOf(AuditEntry::Event::kStarted, call, arguments, approval_id);
  line.reason = permission.why;
  line.decided_by = permission.decided_by;
  line.outside_sandbox = permission.outside_sandbox;
  return line;
}

AuditEntry Ended(const ToolCall& call, const std::string& arguments, const ToolOutcome& outcome,
                 std::chrono::steady_clock::duration taken, const std::string& approval_id) {
  AuditEntry line = LineOf(AuditEntry::Event::kEnded, call, arguments, approval_id);
  line.is_error = outcome.is_error;
  line.exit_status = outcome.exit_status;
  line.duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(taken).count();
  return line;
}

AuditEntry Connected(const ToolCall& call, const std::string& arguments, const NetworkUse& use) {
  AuditEntry line = LineOf(AuditEntry::Event::kConnected, call, arguments);
  const bool is_v6 = use.host.find(':') != std::string::npos;
  line.host = (is_v6 ? "[" + use.host + "]" : use.host) + ":" + std::to_string(use.port);
  line.sent_bytes = use.sent;
  line.received_bytes = use.received;
  return line;
}

AuditEntry Answered(const ToolCall& call, const std::string& approval_id, const ApprovalAnswer& answer) {
  const std::string& arguments = answer.approved && answer.arguments ? *answer.arguments : call.arguments;
  const auto event = answer.approved ? AuditEntry::Event::kApproved : AuditEntry::Event::kRejected;
  AuditEntry line = LineOf(event, call, arguments, approval_id);
  if (answer.approved) line.reason = ToString(answer.scope);
  if (answer.expired) line.reason = NameOf(Reason::kExpired);
  line.answered_by = answer.answered_by;
  line.outside_sandbox = answer.approved && answer.outside_sandbox;
  return line;
}

AuditEntry Superseded(const ToolCall& call, const std::string& approval_id) {
  AuditEntry line = LineOf(AuditEntry::Event::kRejected, call, call.arguments, approval_id);
  line.reason = "superseded";
  return line;
}

AuditEntry Refused(const ToolCall& call, std::string_view why, const std::vector<std::string>& decided_by) {
  AuditEntry line = LineOf(AuditEntry::Event::kRefused, call, call.arguments);
  line.reason = why;
  line.decided_by = decided_by;
  return line;
}

AuditEntry Pruned(const ChatId& chat, InteractionId from) {
  AuditEntry line = LineOf(AuditEntry::Event::kPruned, ToolCall{}, /*arguments=*/"");
  line.chat_id = chat.str();
  line.interaction_id = from.str();
  return line;
}

AuditEntry ModeChanged(const ChatId& chat, std::optional<ApprovalMode> mode) {
  AuditEntry line = LineOf(AuditEntry::Event::kModeChanged, ToolCall{}, /*arguments=*/"");
  line.chat_id = chat.str();
  line.reason = mode ? ToString(*mode) : "server";
  return line;
}

AuditEntry InstructionsChanged(const ChatId& chat, const std::string& instructions) {
  AuditEntry line = LineOf(AuditEntry::Event::kInstructionsChanged, ToolCall{}, instructions);
  line.chat_id = chat.str();
  return line;
}

AuditEntry ServerChanged(AuditEntry::Event event, const std::string& name, const std::string& digest) {
  AuditEntry line = LineOf(event, ToolCall{}, /*arguments=*/"");
  line.tool_name = name;
  line.arguments_digest = digest;
  return line;
}

AuditEntry PortChanged(const ChatId& chat, const std::string& job, const JobPort& port, const std::string& by) {
  const bool is_open = port.state == JobPort::State::kOpen;
  AuditEntry line = LineOf(is_open ? AuditEntry::Event::kPortOpened : AuditEntry::Event::kPortClosed, ToolCall{},
                           /*arguments=*/"");
  line.chat_id = chat.str();
  line.job_id = job;
  line.port = port.port;
  line.answered_by = by;
  constexpr std::string_view kScheme = "http://";
  if (is_open) line.host = port.url.substr(kScheme.size(), port.url.size() - kScheme.size() - 1);
  return line;
}

}  // namespace reprise::audit
