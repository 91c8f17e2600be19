#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/guardrails.h"
#include "reprise/result.h"

namespace re2 {
class RE2;
}

namespace reprise {

// The configured guardrails, ready for use. Immutable, thread-safe. Takes time in proportion to the text, whatever the
// patterns.
class Guardrails {
 public:
  // kInvalidArgument: not a pattern, too large a one, or one that matches nothing at all, which is everywhere.
  static Result<void> Check(const std::string& pattern);

  // A pattern that Check refuses refuses everything, and takes away everything.
  explicit Guardrails(const GuardrailOptions& options);
  ~Guardrails();

  // kInvalidArgument (reason "guardrail"); which pattern it was is not said.
  Result<void> Admit(std::string_view user_message) const;
  bool looks_at_output() const { return !output_.empty(); }
  std::string Redacted(std::string output) const;

 private:
  std::vector<std::unique_ptr<re2::RE2>> input_, output_;
};

}  // namespace reprise
