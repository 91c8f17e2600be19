#include "engine/live_turn.h"

#include "support/test.h"

namespace reprise::live_turn_test {
namespace {

TEST_CASE("calls are the same if names and arguments are, in any order of the members") {
  const ToolCall call{"1", "read_file", R"({"path":"a","lines":[1,2]})"};
  CHECK(IsSameCall(call, {"2", "read_file", R"({ "lines": [1, 2], "path": "\u0061" })"}));
  CHECK(IsSameCall({"1", "list", ""}, {"2", "list", " {} "}));
  CHECK(IsSameCall({"1", "list", "[1"}, {"2", "list", "[1"}));
  for (const char* other :
       {R"({"path":"b","lines":[1,2]})", R"({"path":"a","lines":[2,1]})", R"({"path":"a"})", "{}", "", "[1", "\xff"}) {
    INFO(other);
    CHECK(!IsSameCall(call, {"2", "read_file", other}));
  }
  CHECK(!IsSameCall(call, {"2", "write_file", call.arguments}));
}

}  // namespace
}  // namespace reprise::live_turn_test
