#include "mcp/content.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "support/test.h"

namespace reprise {
namespace {

ToolOutcome Outcome(const std::string& json) { return ToolResultText(*ParseJson(json)); }

}  // namespace

TEST_CASE("ToolResultText: text, pictures and resources", "[mcp]") {
  CHECK(Outcome(R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})").output == "a\nb");
  CHECK(Outcome(R"({"content":[{"type":"image","mimeType":"image/png","data":"AAAAAAAA"}]})").output ==
        "(image, image/png, 6 bytes, not shown)");
  CHECK(Outcome(R"({"content":[{"type":"resource","resource":{"uri":"x://1","text":"words"}}]})").output ==
        "[x://1]\nwords");
  CHECK(Outcome(R"({"content":[{"type":"resource","resource":{"uri":"x://2","mimeType":"a/b","blob":"AAAA"}}]})")
            .output == "(x://2, a/b, 3 bytes, not text)");
  CHECK(Outcome(R"({"content":[{"type":"resource_link","uri":"x://3","name":"n","description":"d"}]})").output ==
        "(resource x://3: n) d");
  CHECK(Outcome(R"({"content":[]})").output == "(no output)");
  CHECK(Outcome(R"({"content":[7,{"type":"new"}],"isError":true})").is_error);
}

TEST_CASE("ToolResultText: structured content is shown once", "[mcp]") {
  CHECK(Outcome(R"({"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}})").output ==
        R"({"a": 1})");
  CHECK(Outcome(R"({"content":[{"type":"text","text":"see below"}],"structuredContent":{"a":1}})").output ==
        "see below\n{\"a\":1}");
  CHECK(Outcome(R"({"content":[{"type":"text","text":"x"}],"structuredContent":{"content":"x"}})").output == "x");
  CHECK(Outcome(R"({"structuredContent":{"a":1}})").output == R"({"a":1})");
}

TEST_CASE("ToolResultText: a tool may want the user's confirmation", "[mcp]") {
  const auto asked =
      Outcome(R"({"structuredContent":{"requires_confirmation":true,"message":"Really?"},"isError":true})");
  CHECK(asked.requires_confirmation);
  CHECK(asked.output == "Really?");
  CHECK_FALSE(asked.is_error);
  CHECK_FALSE(Outcome(R"({"structuredContent":{"requires_confirmation":"yes"}})").requires_confirmation);
  CHECK_FALSE(
      Outcome(R"({"content":[{"type":"text","text":"{\"requires_confirmation\":true}"}]})").requires_confirmation);
}

TEST_CASE("ToolResultText: long results are cut between characters", "[mcp]") {
  std::string text = "x";
  while (text.size() < 200'000) text += "ü";
  const Json result = {{"content", {{{"type", "text"}, {"text", text}}}}};
  const ToolOutcome outcome = ToolResultText(result);
  CHECK(outcome.output.size() < 132'000);
  CHECK(IsUtf8(outcome.output));
  CHECK(outcome.output.find("bytes cut") != std::string::npos);
}

TEST_CASE("ResourceText, PromptText: what a server returns, as text", "[mcp]") {
  CHECK(ResourceText(*ParseJson(R"({"contents":[{"uri":"a","text":"1"},{"uri":"b","text":"2"}]})")) ==
        "[a]\n1\n[b]\n2");
  CHECK(ResourceText(*ParseJson("{}")) == "(empty)");
  CHECK(PromptText(
            *ParseJson(R"({"description":"D","messages":[{"role":"user","content":{"type":"text","text":"hi"}}]})")) ==
        "D\nuser: hi");
}

}  // namespace reprise
