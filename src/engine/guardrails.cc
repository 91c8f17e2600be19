#include "engine/guardrails.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/redactor.h"

namespace reprise {
namespace {

re2::RE2::Options PatternOptions() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

std::vector<std::unique_ptr<re2::RE2>> Compile(const std::vector<std::string>& patterns) {
  std::vector<std::unique_ptr<re2::RE2>> compiled;
  for (const std::string& pattern : patterns) compiled.push_back(std::make_unique<re2::RE2>(pattern, PatternOptions()));
  return compiled;
}

}  // namespace

Result<void> Guardrails::Check(const std::string& pattern) {
  const re2::RE2 compiled(pattern, PatternOptions());
  if (!compiled.ok()) return Fail(ErrorCode::kInvalidArgument, "is no regular expression: " + compiled.error());
  if (re2::RE2::PartialMatch("", compiled)) return Fail(ErrorCode::kInvalidArgument, "matches the empty text");
  return {};
}

Guardrails::Guardrails(const GuardrailOptions& options)
    : input_(Compile(options.input)), output_(Compile(options.output)) {}
Guardrails::~Guardrails() = default;

Result<void> Guardrails::Admit(std::string_view user_message) const {
  const re2::StringPiece text(user_message.data(), user_message.size());
  const bool refused = std::any_of(input_.begin(), input_.end(), [&](const auto& pattern) {
    return !pattern->ok() || re2::RE2::PartialMatch(text, *pattern);
  });
  if (!refused) return {};
  return Fail(Error{.code = ErrorCode::kInvalidArgument,
                    .reason = "guardrail",
                    .message = "the message has what this server is told not to take"});
}

std::string Guardrails::Redacted(std::string output) const {
  for (const auto& pattern : output_) {
    if (!pattern->ok()) return std::string(kRedacted);
    re2::RE2::GlobalReplace(&output, *pattern, re2::StringPiece(kRedacted.data(), kRedacted.size()));
  }
  return output;
}

}  // namespace reprise
