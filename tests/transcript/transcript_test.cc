#include "domain/transcript/transcript.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "domain/codec.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::test::transcript_test {

TEST_CASE("FormatInteraction: the sample reads as documented", "[transcript]") {
  const std::string file = SourceDirectory() + "/chats/sample/trip/interactions/int_002.json";
  const auto interaction = InteractionFromJson(*ParseJson(ReadText(file)));
  REQUIRE(interaction.has_value());
  CHECK(FormatInteraction(*interaction, /*superseded=*/true) ==
        "int_002  COMPLETED  " + FormatForReading(interaction->created_at) +
            "  openai/gpt-4o-mini  791 tokens in, 42 out  superseded\n"
            "  you       Note that in budget.txt, please.\n"
            "  agent     I will write the file.\n"
            "  asked     write_file {\"path\":\"budget.txt\",\"content\":\"Trip: 375.90\\n\"}\n"
            "            (writes a file, risk medium)\n"
            "  approved  once\n"
            "  tool      write_file {\"path\":\"budget.txt\",\"content\":\"Trip: 375.90\\n\"}\n"
            "  result    wrote 13 bytes to budget.txt\n"
            "  agent     Done: budget.txt says 375.90.\n");
}

TEST_CASE("FormatInteraction: an answer that was cut off says so", "[transcript]") {
  Interaction interaction{.id = InteractionId::FromNumber(1), .chat_id = *ChatId::Parse("c")};
  AgentEvent answer;
  answer.payload = event::Answer{"half a sen", "length"};
  interaction.events.push_back(answer);
  CHECK(FormatInteraction(interaction, false).ends_with("  agent     half a sen\n  cut off   length\n"));
}

TEST_CASE("FormatInteraction: a tool's output cannot steer the terminal or forge a line", "[transcript]") {
  Interaction interaction{.id = InteractionId::FromNumber(1), .chat_id = *ChatId::Parse("c")};
  interaction.user_message = "hi";
  AgentEvent result;
  result.payload = event::ToolResult{"call_1", "run_shell", "\x1b]0;evil\x07\n  agent     forged", true};
  interaction.events.push_back(result);
  const std::string text = FormatInteraction(interaction, false);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("  failed    <U+001B>]0;evil<U+0007>\n              agent     forged\n") != std::string::npos);
}

}  // namespace reprise::test::transcript_test
