#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "model/tool_lessons.h"
#include "support/test.h"

namespace reprise::tool_schema_test {
namespace {

Json Completed(const std::string& schema) { return ParseJson(CompleteSchema(schema)).value(); }

}  // namespace

TEST_CASE("CompleteSchema: a complete schema stays as it is", "[model]") {
  for (
      const char* schema :
      {R"({"type":"object","properties":{}})",
       R"({"type":"object","properties":{"path":{"type":"string","description":"a file"},"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false})",
       R"({"type":"object","properties":{"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"}},"required":["old"]}}},"required":["edits"]})",
       R"({"type":"object","properties":{"mode":{"type":"string","enum":["a","b"],"default":"a"},"limit":{"type":"integer","minimum":1}}})",
       R"({"type":"object","properties":{"value":{"anyOf":[{"type":"string"},{"type":"null"}]},"any":{"type":"string","default":null}}})"}) {
    INFO(schema);
    CHECK(IsSameInAnyOrder(Completed(schema), ParseJson(schema).value()));
  }
}

TEST_CASE("CompleteSchema: what providers refuse is completed", "[model]") {
  CHECK(Completed(R"({"type":"object","properties":null})") ==
        Json{{"type", "object"}, {"properties", Json::object()}});
  const Json kept =
      Completed(R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"],"title":null})");
  CHECK(kept["required"] == Json{"a"});
  CHECK(kept["properties"]["a"]["type"] == "string");
  CHECK(!kept.contains("title"));
}

}  // namespace reprise::tool_schema_test
