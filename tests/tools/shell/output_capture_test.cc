#include "base/text.h"
#include "support/test.h"
#include "tools/shell/command_runner.h"

namespace reprise::output_capture_test {

TEST_CASE("OutputCapture: short output is kept as it is", "[tools]") {
  OutputCapture capture(100, {});
  capture.Add("one ");
  capture.Add("two");
  CHECK(capture.Finish() == "one two");
}

TEST_CASE("OutputCapture: keeps the beginning and the end of long output", "[tools]") {
  OutputCapture capture(10, {});
  for (int i = 0; i < 1000; ++i) capture.Add("0123456789");
  CHECK(capture.Finish() == "01234\n(... 9990 bytes cut ...)\n56789");
}

TEST_CASE("OutputCapture: output of exactly the limit is whole", "[tools]") {
  OutputCapture capture(10, {});
  capture.Add("0123456789");
  CHECK(capture.Finish() == "0123456789");
}

TEST_CASE("OutputCapture: a character split over chunks is streamed whole", "[tools]") {
  std::vector<std::string> seen;
  OutputCapture capture(100, [&](std::string_view bytes) { seen.emplace_back(bytes); });
  for (const char c : std::string("a\xf0\x9f\x98\x80z")) capture.Add(std::string_view(&c, 1));
  CHECK(capture.Finish() == "a\xf0\x9f\x98\x80z");
  CHECK(seen == std::vector<std::string>{"a", "\xf0\x9f\x98\x80", "z"});
}

TEST_CASE("OutputCapture: a character that never ends is shown as broken", "[tools]") {
  std::string seen;
  OutputCapture capture(100, [&](std::string_view bytes) { seen += bytes; });
  capture.Add("a\xf0\x9f");
  CHECK(capture.Finish() == "a\xef\xbf\xbd");
  CHECK(seen == "a\xef\xbf\xbd");
}

TEST_CASE("OutputCapture: streaming is bounded and always UTF-8, wherever the cuts fall", "[tools]") {
  std::string seen;
  OutputCapture capture(9, [&](std::string_view bytes) { seen += bytes; });
  for (int i = 0; i < 100; ++i) capture.Add("\xe2\x82\xac\xe2\x82");
  const std::string text = capture.Finish();
  CHECK(IsUtf8(text));
  CHECK(IsUtf8(seen));
  CHECK(seen.size() < 30);
}

}  // namespace reprise::output_capture_test
