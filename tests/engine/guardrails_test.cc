#include <string>

#include "engine/run_guard.h"
#include "support/test.h"

namespace reprise::guardrails_test {

TEST_CASE("Guardrails: a message with what is not taken is refused, and the pattern not named", "[engine]") {
  const Guardrails rails({.input = {"(?i)my password is", "[0-9]{16}"}, .output = {}});
  CHECK(rails.Admit("hello"));
  CHECK(rails.Admit(""));
  const auto refused = rails.Admit("well,\nMY PASSWORD IS x");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == "guardrail");
  CHECK(refused.error().message.find("password") == std::string::npos);
  CHECK_FALSE(rails.Admit("card 1234567812345678"));
  const Guardrails line({.input = {"from.*to"}, .output = {}});
  CHECK_FALSE(line.Admit("from here to there"));
  CHECK(line.Admit("from here\nto there"));
  CHECK_FALSE(rails.looks_at_output());
}

TEST_CASE("Guardrails: what tools say loses what matches", "[engine]") {
  const Guardrails rails({.input = {}, .output = {"[0-9]{4}", "(?s)BEGIN.*END", "secret.*"}});
  CHECK(rails.Redacted("a 1234 b BEGIN x\ny END c") == "a [redacted] b [redacted] c");
  CHECK(rails.Redacted("nothing") == "nothing");
  CHECK(rails.Redacted("a secret\nline 2\nsecrets\n") == "a [redacted]\nline 2\n[redacted]\n");
}

TEST_CASE("Guardrails: hostile patterns and texts take their time and no more", "[engine]") {
  const Guardrails rails({.input = {"(a*)*b"}, .output = {"(x+x+)+y"}});
  CHECK(rails.Admit(std::string(100'000, 'a')));
  CHECK(rails.Redacted(std::string(100'000, 'x')).size() == 100'000);
}

TEST_CASE("Guardrails: patterns that cannot work are refused, and fail closed", "[engine]") {
  CHECK(Guardrails::Check("a+b"));
  for (const char* pattern : {"(", "a*", "", "(?=a)", "\\1"}) {
    INFO(pattern);
    CHECK_FALSE(Guardrails::Check(pattern));
  }
  const Guardrails broken({.input = {"("}, .output = {"("}});
  CHECK_FALSE(broken.Admit("anything"));
  CHECK(broken.Redacted("anything") == "[redacted]");
}

}  // namespace reprise::guardrails_test
