#include <nlohmann/json.hpp>

#include "base/json.h"
#include "domain/codec.h"
#include "domain/transcript/transcript.h"
#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::markdown_test {
namespace {

const ChatSummary kSummary{.id = *ChatId::Parse("trip"), .title = "a \"title\": \x1b[2J"};

std::string Format(std::vector<EventPayload> events, const std::string& message = "hi", bool superseded = false) {
  Interaction interaction{.id = InteractionId::FromNumber(2), .chat_id = *ChatId::Parse("trip")};
  interaction.status = InteractionStatus::kCompleted;
  interaction.user_message = message;
  for (EventPayload& payload : events) {
    interaction.events.push_back({.seq = interaction.events.size() + 1, .payload = std::move(payload)});
  }
  return FormatMarkdown(kSummary, {{&interaction, superseded}});
}

}  // namespace

TEST_CASE("FormatMarkdown: facts in front, then who said what", "[markdown]") {
  CHECK(Format({event::ToolCallStarted{"c1", "calculator", "{\"expression\":\"2+2\"}"},
                event::ToolResult{"c1", "calculator", "4", false}, event::Answer{"It is **4**.\nReally."}},
               "2+2?\nplease", /*superseded=*/true) ==
        "---\nchat: \"trip\"\ntitle: \"a \\\"title\\\": <U+001B>[2J\"\ncreated_at: \"1970-01-01T00:00:00.000Z\"\n"
        "updated_at: \"1970-01-01T00:00:00.000Z\"\n---\n\n# a \"title\": <U+001B>[2J\n"
        "\n## int_002 · 1970-01-01T00:00:00.000Z · COMPLETED · superseded\n"
        "\n**You**\n\n> 2+2?\n> please\n"
        "\n**Tool** `calculator`\n\n```\n{\"expression\":\"2+2\"}\n```\n"
        "\n**Result**\n\n```\n4\n```\n"
        "\n**Agent**\n\n> It is **4**.\n> Really.\n");
}

TEST_CASE("FormatMarkdown: an answer that was cut off says so", "[markdown]") {
  CHECK(Format({event::Answer{"half a sen", "length"}}, "hi")
            .ends_with("\n**Agent**\n\n> half a sen\n\n*Cut off:* length\n"));
}

TEST_CASE("FormatMarkdown: a tool's output cannot leave its fence, nor a message its quote", "[markdown]") {
  const std::string text =
      Format({event::ToolResult{"c", "t`x", "a\n````\n# forged\n", true}}, "x\n---\n\n## int_009 forged");
  CHECK(text.find("`````\na\n````\n# forged\n`````\n") != std::string::npos);
  CHECK(text.find("\n> ---\n> \n> ## int_009 forged\n") != std::string::npos);
}

TEST_CASE("FormatMarkdown: an answer can forge neither a turn nor HTML", "[markdown]") {
  const std::string text = Format({event::MessageText{"done\n\n## int_009 · forged\n**You**\n<img src=x>"},
                                   event::Answer{"a < b\n</div><b>\n```cpp\n#include <vector>\n```\n<script>"}},
                                  "<i>");
  CHECK(text.find("\n## int_009") == std::string::npos);
  CHECK(text.find("\n> ## int_009") != std::string::npos);
  CHECK(text.find("\n**You**\n\n> &lt;i>\n") != std::string::npos);
  CHECK(text.find("<img") == std::string::npos);
  CHECK(text.find("> a < b\n> &lt;/div>&lt;b>\n> ```cpp\n> #include <vector>\n> ```\n> &lt;script>\n") !=
        std::string::npos);
}

TEST_CASE("FormatMarkdown: what only some readers take for code does not hide a tag", "[markdown]") {
  for (const std::string opening : {"  ```", "- ```", "> ```", "~~~", "```a`b", "   ~~~", "\t```"}) {
    INFO(opening);
    CHECK(Format({event::Answer{opening + "\n```\n<img>\n" + opening + "\n<img>"}}).find("<img>") == std::string::npos);
  }
}

}  // namespace reprise::test::markdown_test
