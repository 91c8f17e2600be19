#include "support/test.h"
#include "tools/builtin_tools.h"

namespace reprise::simple_tools_test {
namespace {

ToolOutcome TimeIn(const std::string& arguments) {
  const auto fixed = [] { return *ParseTimestamp("2025-07-15T10:00:00.250Z"); };
  return MakeCurrentTimeTool(fixed)->Run(arguments, {});
}

}  // namespace

TEST_CASE("current_time: tells the time in a zone with its offset", "[tools]") {
  CHECK(TimeIn("{}").output == "2025-07-15T10:00:00.250Z");
  CHECK(TimeIn(R"({"timezone":"Europe/Berlin"})").output == "2025-07-15T12:00:00.250+02:00");
  CHECK(TimeIn(R"({"timezone":"America/New_York"})").output == "2025-07-15T06:00:00.250-04:00");
  CHECK(TimeIn(R"({"timezone":"Asia/Kolkata"})").output == "2025-07-15T15:30:00.250+05:30");
}

TEST_CASE("current_time: refuses anything but names of zones", "[tools]") {
  for (const char* name : {"Mars/Olympus", "/etc/localtime", "../../../etc/passwd", "Europe/../Europe/Berlin", "Europe",
                           "Europe/Berlin\\u0000", "file:/etc/localtime"}) {
    INFO(name);
    const auto outcome = TimeIn(std::string(R"({"timezone":")") + name + "\"}");
    CHECK(outcome.is_error);
    CHECK(outcome.output.find("there is no time zone") == 0);
  }
}

}  // namespace reprise::simple_tools_test
