#include <nlohmann/json.hpp>

#include "base/text.h"
#include "mcp/mcp_tool.h"
#include "support/test.h"

namespace reprise::content_test {
namespace {

ToolOutcome Outcome(const std::string& json) { return ToolResultText(*ParseJson(json)); }

}  // namespace

TEST_CASE("ToolResultText: text, pictures and resources", "[mcp]") {
  CHECK(Outcome(R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})").output == "a\nb");
  const ToolOutcome image = Outcome(R"({"content":[{"type":"image","mimeType":"image/png","data":"++//AA=="}]})");
  CHECK(image.output.empty());
  REQUIRE(image.files.size() == 1);
  CHECK((image.files[0].mime_type == "image/png" && image.files[0].content == std::string("\xfb\xef\xff\0", 4)));
  CHECK(Outcome(R"({"content":[{"type":"image","mimeType":"image/png","data":"no base64!"}]})").output ==
        "(image, image/png, 6 bytes, not shown)");
  CHECK(Outcome(R"({"content":[{"type":"resource","resource":{"uri":"x://1","text":"words"}}]})").output ==
        "[x://1]\nwords");
  const ToolOutcome blob =
      Outcome(R"({"content":[{"type":"resource","resource":{"uri":"x://a/2.bin","mimeType":"a/b","blob":"AAAA"}}]})");
  REQUIRE(blob.files.size() == 1);
  CHECK((blob.files[0].filename == "2.bin" && blob.files[0].content.size() == 3));
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

TEST_CASE("ToolResultText: structured content that repeats the blocks is left out", "[mcp]") {
  const std::string image = R"({"type":"image","mimeType":"image/png","data":"QUJD"})";
  const ToolOutcome once = Outcome(R"({"content":[)" + image + R"(],"structuredContent":{"content":[)" + image + "]}}");
  CHECK((once.output.empty() && once.files.size() == 1));
  CHECK(Outcome(R"({"content":[{"type":"text","text":"[{\"name\":\"x\"}]"}],)"
                R"("structuredContent":{"entities":[{"name":"x"}]}})")
            .output == R"([{"name":"x"}])");
  CHECK(Outcome(R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"2"}],)"
                R"("structuredContent":{"result":["a",2]}})")
            .output == "a\n2");
  CHECK(Outcome(R"({"content":[{"type":"text","text":"a"}],"structuredContent":{"result":["a","b"]}})").output ==
        "a\n{\"result\":[\"a\",\"b\"]}");
}

TEST_CASE("ToolResultText: base64 never reaches the model as text", "[mcp]") {
  std::string data(80'000, 'Q');
  const std::string size = "58 KiB";
  const Json image = {{"type", "image"}, {"mimeType", "image/png"}, {"data", data}};
  const Json blob = {{"uri", "x://1"}, {"blob", data}};
  const auto described = [](const Json& result) { return ToolResultText(result).output; };
  const Json text = {{"type", "text"}, {"text", "see"}};
  CHECK(described({{"content", {text}}, {"structuredContent", {{"a", {image}}, {"b", blob}, {"c", data}}}}) ==
        "see\n{\"a\":[\"(image, image/png, " + size + ", not shown)\"],\"b\":\"(x://1, " + size +
            ", not text)\",\"c\":\"(base64, " + size + ", not shown)\"}");
  CHECK(described({{"content", {{{"type", "text"}, {"text", DumpJson({{"content", {image}}})}}}}}) ==
        "{\"content\":[\"(image, image/png, " + size + ", not shown)\"]}");
  CHECK(described({{"content", {{{"type", "text"}, {"text", data}}}}}) == "(base64, " + size + ", not shown)");
  CHECK(described({{"content", {{{"type", "text"}, {"text", "data:image/png;base64," + data}}}}}).size() < 100);
  // Long text that is not base64: words, a list of hashes, one long line of code.
  for (const std::string& words : {data + " and more", std::string(64, 'a') + "\n" + data, "x = '" + data + "'"}) {
    CHECK(described({{"content", {{{"type", "text"}, {"text", words}}}}}) == words);
  }
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

TEST_CASE("Shortened: long results are cut between characters, and kept as a whole", "[mcp]") {
  std::string text = "x";
  while (text.size() < 200'000) text += "ü";
  text += "the end";
  const Json result = {{"content", {{{"type", "text"}, {"text", text}}}}};
  const std::string alone = Shortened(ToolResultText(result).output, {});
  CHECK(alone.size() < 132'000);
  CHECK(IsUtf8(alone));
  CHECK(alone.find("bytes cut") != std::string::npos);
  CHECK(alone.ends_with("the end"));
  struct Keeper final : OutputKeeper {
    explicit Keeper(std::string& kept) : whole(kept) {}
    void Add(std::string_view bytes) override { whole += bytes; }
    std::string Finish() override { return "(kept)"; }
    std::string& whole;
  };
  std::string whole;
  const std::string kept = Shortened(text, [&] { return std::make_unique<Keeper>(whole); });
  CHECK(whole == text);
  CHECK(IsUtf8(kept));
  CHECK(kept.size() < 33'000);
  CHECK(kept.starts_with("xü"));
  CHECK(kept.ends_with("üthe end\n(kept)"));
  CHECK(Shortened("short", [&] { return std::make_unique<Keeper>(whole); }) == "short");
}

TEST_CASE("ResourceOutcome, PromptText: a server's results as text", "[mcp]") {
  CHECK(ResourceOutcome(*ParseJson(R"({"contents":[{"uri":"a","text":"1"},{"uri":"b","text":"2"}]})")).output ==
        "[a]\n1\n[b]\n2");
  CHECK(ResourceOutcome(*ParseJson("{}")).output == "(empty)");
  const ToolOutcome mixed = ResourceOutcome(
      *ParseJson(R"({"contents":[{"uri":"a","text":"1"},{"uri":"x://a/b.pdf?q","mimeType":"a/b","blob":"QUI="}]})"));
  CHECK(mixed.output == "[a]\n1");
  REQUIRE(mixed.files.size() == 1);
  CHECK((mixed.files[0].filename == "b.pdf" && mixed.files[0].content == "AB"));
  CHECK(PromptText(
            *ParseJson(R"({"description":"D","messages":[{"role":"user","content":{"type":"text","text":"hi"}}]})")) ==
        "D\nuser: hi");
}

}  // namespace reprise::content_test
