#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/terminal_text.h"
#include "support/test.h"

namespace reprise::hidden_text_test {

TEST_CASE("EscapeHidden: escapes deceptive characters and keeps the rest and the value", "[domain]") {
  CHECK(EscapeHidden("{\"a\":\t\"h\u00e9\u4e2d\\n\"}\n") == "{\"a\":\t\"h\u00e9\u4e2d\\n\"}\n");
  CHECK(EscapeHidden("\"a\u202eb\u2066c\u200bd\u00a0\x7f\"") == R"("a\u202eb\u2066c\u200bd\u00a0\u007f")");
  CHECK(EscapeHidden("\"\xf3\xa0\x81\x81\"") == R"("\udb40\udc41")");  // a tag character, U+E0041
  const std::string text = "\"x\u202e\xf3\xa0\x81\x81\ufeffy\"";
  CHECK(ParseJson(EscapeHidden(text)).value() == ParseJson(text).value());
}

}  // namespace reprise::hidden_text_test
