#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "reprise/audit_log.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/tool.h"

namespace reprise {

// Stands between an agent and what it does: may refuse or change its tool calls, keeps account of them, and takes out
// of what tools say that which nobody is to see. Thread-safe; its functions block on the thread that they are called
// on.
class CallGuard {
 public:
  virtual ~CallGuard() = default;

  // True if Begin or Admit may take a while.
  virtual bool reviews_requests() const { return false; }
  // Before anything else. What fails here does not begin, and the run FAILED; likewise Admit and Heard.
  virtual Result<void> Begin(const std::stop_token& /*stop*/) { return {}; }
  // Before what is asked of the model in a round, and again when it is asked again. Gives what the model is to be told
  // with it.
  virtual Result<std::string> Admit(std::uint32_t /*round_index*/, const std::string& /*model*/,
                                    const std::stop_token& /*stop*/) {
    return std::string();
  }
  // What the model has said, before anything of it is done.
  virtual Result<void> Heard(std::uint32_t /*round_index*/, const std::string& /*model*/, const std::string& /*text*/,
                             const std::stop_token& /*stop*/) {
    return {};
  }

  struct Verdict {
    std::optional<std::string> refusal{};    // why it does not run, for the model
    std::optional<std::string> arguments{};  // to be taken in place of the model's
  };
  // Of a call with valid arguments, before anybody is asked about it.
  virtual Verdict Review(std::uint32_t round_index, const ToolCall& call, const std::stop_token& stop) = 0;
  // Puts it on account; who and where is filled in. What fails here must not happen.
  virtual Result<void> Note(AuditEntry entry) = 0;
  // What a tool says, as it may be seen.
  virtual std::string Redacted(std::string text) const { return text; }
  // What a call has led to, as it may be seen.
  virtual ToolOutcome Passed(std::uint32_t round_index, const ToolCall& call, ToolOutcome outcome,
                             const std::stop_token& stop) = 0;
  // The same for one call's live output: takes it piece by piece, gives back what may be shown by now. Empty: all may.
  virtual std::function<std::string(std::string_view)> LiveFilter() const { return {}; }
};

}  // namespace reprise
