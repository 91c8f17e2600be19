#include <cctz/time_zone.h>

#include <algorithm>
#include <string>

#include "base/text.h"
#include "tools/arguments.h"
#include "tools/builtin_tools.h"
#include "tools/calculator.h"

namespace reprise {
namespace {

class EchoTool final : public BuiltinTool {
 public:
  EchoTool()
      : BuiltinTool({.spec = {.name = "echo",
                              .description = "Returns the text it is given, unchanged.",
                              .parameters = R"({"type":"object","additionalProperties":false,"required":["text"],
"properties":{"text":{"type":"string","description":"The text to return."}}})"},
                     .approval_reason = "returns a text"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext&) override {
    return {.output = ToValidUtf8(Arguments(arguments).String("text").value_or(""))};
  }
};

class CalculatorTool final : public BuiltinTool {
 public:
  CalculatorTool()
      : BuiltinTool(
            {.spec = {.name = "calculator",
                      .description =
                          "Evaluates an arithmetic expression and returns its value. Knows + - * / % ^ (or **), "
                          "parentheses, decimals, 1e3, pi, e, and the functions sqrt, abs, min, max, round, floor, "
                          "ceil, sin, cos, tan (radians), log (base 10), ln and exp.",
                      .parameters = R"({"type":"object","additionalProperties":false,"required":["expression"],
"properties":{"expression":{"type":"string","minLength":1,"maxLength":4096,
"description":"For example (2 + 3) * sqrt(16)."}}})"},
             .approval_reason = "evaluates an expression"}) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext&) override {
    const auto value = EvaluateExpression(Arguments(arguments).String("expression").value_or(""));
    if (!value) return ToolFailure("cannot calculate: " + value.error().message);
    return {.output = FormatNumber(*value)};
  }
};

// "Europe/Berlin", "Etc/GMT+5". Checked because the library would also open absolute paths and "..".
bool IsZoneName(std::string_view name) {
  if (name.empty() || name.size() > 64 || name.front() == '/' || name.find("..") != std::string_view::npos)
    return false;
  return std::ranges::all_of(name,
                             [](char c) { return IsAsciiAlnum(c) || c == '_' || c == '/' || c == '+' || c == '-'; });
}

class CurrentTimeTool final : public BuiltinTool {
 public:
  explicit CurrentTimeTool(std::function<Timestamp()> now)
      : BuiltinTool({.spec = {.name = "current_time",
                              .description = "Returns the current date and time in ISO 8601, in UTC or in a time zone.",
                              .parameters = R"({"type":"object","additionalProperties":false,
"properties":{"timezone":{"type":"string","minLength":1,"maxLength":64,
"description":"A name of the IANA time zone database such as Europe/Berlin. Default: UTC."}}})"},
                     .approval_reason = "tells the time"}),
        now_(std::move(now)) {}

  ToolOutcome Run(std::string_view arguments, const ToolContext&) override {
    const Timestamp now = now_();
    const std::string name = Arguments(arguments).String("timezone").value_or("UTC");
    if (name == "UTC") return {.output = FormatTimestamp(now)};
    cctz::time_zone zone;
    if (!IsZoneName(name) || !cctz::load_time_zone(name, &zone)) {
      return ToolFailure("there is no time zone \"" + ToValidUtf8(name) +
                         "\"; use a name of the IANA database such as America/New_York");
    }
    return {.output = cctz::format("%Y-%m-%dT%H:%M:%E3S%Ez", now, zone)};
  }

 private:
  const std::function<Timestamp()> now_;
};

}  // namespace

std::unique_ptr<BuiltinTool> MakeEchoTool() { return std::make_unique<EchoTool>(); }
std::unique_ptr<BuiltinTool> MakeCalculatorTool() { return std::make_unique<CalculatorTool>(); }
std::unique_ptr<BuiltinTool> MakeCurrentTimeTool(std::function<Timestamp()> now) {
  return std::make_unique<CurrentTimeTool>(std::move(now));
}

}  // namespace reprise
