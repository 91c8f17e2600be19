#include "model/json_text.h"

#include "support/test.h"

namespace reprise::json_text_test {
namespace {

TEST_CASE("JSON text: a surrogate escape without its partner becomes U+FFFD", "[model]") {
  CHECK(MendSurrogateEscapes(R"("a\ud800b")") == R"("a\ufffdb")");
  CHECK(MendSurrogateEscapes(R"("\uDC00")") == R"("\ufffd")");
  CHECK(MendSurrogateEscapes(R"("\ud83d\ud83d\ude00")") == R"("\ufffd\ud83d\ude00")");
  CHECK(MendSurrogateEscapes(R"("\ud83d\n")") == R"("\ufffd\n")");
  CHECK(MendSurrogateEscapes(R"("\ud83d)") == R"("\ufffd)");
}

TEST_CASE("JSON text: whole pairs and escaped backslashes stay as they are", "[model]") {
  for (const char* text : {R"("\ud83d\ude00")", R"("\\ud800")", R"("\u00e9 \" \\")", R"("\ud8)", R"("\)", ""}) {
    CHECK(MendSurrogateEscapes(text) == text);
  }
  CHECK(MendSurrogateEscapes(R"("\\\ud800")") == R"("\\\ufffd")");
}

TEST_CASE("JSON text: the cheap test finds what must be mended", "[model]") {
  CHECK(HasSurrogateEscape(R"("x\ud800")"));
  CHECK(HasSurrogateEscape(R"("\\\uD800")"));
  CHECK_FALSE(HasSurrogateEscape(R"("\\ud800")"));
  CHECK_FALSE(HasSurrogateEscape(R"("\u00e9")"));
}

}  // namespace
}  // namespace reprise::json_text_test
