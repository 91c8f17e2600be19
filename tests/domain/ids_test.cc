#include "reprise/ids.h"

#include <string>
#include <vector>

#include "support/test.h"

using reprise::ChatId;
using reprise::InteractionId;

TEST_CASE("ChatId: only names that are safe as a file name", "[base]") {
  for (const std::string& good : std::vector<std::string>{"a", "chat_123", "A-b_9", std::string(64, 'x')})
    CHECK(ChatId::Parse(good));
  for (const std::string& bad :
       std::vector<std::string>{"", ".", "..", "../x", "a/b", "_a", "-a", "a b", "a.json", "\xC3\xA4", "a%2e",
                                std::string("a\0b", 3), std::string(65, 'x')}) {
    const auto parsed = ChatId::Parse(bad);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().reason == "invalid_chat_id");
  }
  CHECK(ChatId::Random() != ChatId::Random());
}

TEST_CASE("InteractionId: one spelling for each number", "[base]") {
  CHECK(InteractionId::FromNumber(1).str() == "int_001");
  CHECK(InteractionId::FromNumber(1234).str() == "int_1234");
  CHECK(InteractionId::Parse("int_042")->number() == 42);
  for (const std::string bad : {"", "int_", "int_0", "int_000", "int_1", "int_01", "int_0001", "int_-01", "int_ 01",
                                "int_001x", "INT_001", "int_4294967297", "../int_001"}) {
    CHECK_FALSE(InteractionId::Parse(bad));
  }
}
