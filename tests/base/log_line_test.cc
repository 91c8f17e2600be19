#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/logging.h"
#include "support/test.h"

namespace reprise::test::log_line_test {
namespace {

const Timestamp kAt = *ParseTimestamp("2026-01-31T09:30:00.007Z");

std::string Text(LogFields fields) { return LogLine(LogFormat::kText, kAt, LogLevel::kInfo, "said", fields); }

Json Parsed(LogFields fields, std::string_view message = "said") {
  const std::string line = LogLine(LogFormat::kJson, kAt, LogLevel::kInfo, message, fields);
  INFO(line);
  REQUIRE(line.find('\n') == line.size() - 1);
  auto json = ParseJson(line);
  REQUIRE(json);
  return *std::move(json);
}

}  // namespace

TEST_CASE("LogLine: text is logfmt, with texts quoted and numbers bare", "[log]") {
  CHECK(LogLine(LogFormat::kText, kAt, LogLevel::kWarning, "request", {}) ==
        "time=2026-01-31T09:30:00.007Z level=warning msg=\"request\"\n");
  CHECK(Text({{"method", "GET"}, {"status", 200}, {"ms", 0.4125}, {"complete", true}}) ==
        "time=2026-01-31T09:30:00.007Z level=info msg=\"said\" method=\"GET\" status=200 ms=0.412 complete=true\n");
}

TEST_CASE("LogLine: JSON has one object a line, with numbers as numbers", "[log]") {
  CHECK(LogLine(LogFormat::kJson, kAt, LogLevel::kError, "request", {}) ==
        R"({"at":"2026-01-31T09:30:00.007Z","level":"error","message":"request"})"
        "\n");
  const std::string chat = "c";
  const Json line = Parsed({{"chat", chat},
                            {"least", std::numeric_limits<std::int64_t>::min()},
                            {"most", std::numeric_limits<std::uint64_t>::max()},
                            {"ms", 1234.5},
                            {"none", std::string_view()},
                            {"complete", false}});
  CHECK(line == Json({{"at", "2026-01-31T09:30:00.007Z"},
                      {"level", "info"},
                      {"message", "said"},
                      {"chat", "c"},
                      {"least", std::numeric_limits<std::int64_t>::min()},
                      {"most", std::numeric_limits<std::uint64_t>::max()},
                      {"ms", 1234.5},
                      {"none", ""},
                      {"complete", false}}));
}

TEST_CASE("LogLine: the levels by their names", "[log]") {
  const auto level_of = [](LogLevel level) {
    return LogLine(LogFormat::kText, kAt, level, "x", {}).substr(std::string("time=2026-01-31T09:30:00.007Z ").size());
  };
  CHECK(level_of(LogLevel::kDebug) == "level=debug msg=\"x\"\n");
  CHECK(level_of(LogLevel::kInfo) == "level=info msg=\"x\"\n");
  CHECK(level_of(LogLevel::kWarning) == "level=warning msg=\"x\"\n");
  CHECK(level_of(LogLevel::kError) == "level=error msg=\"x\"\n");
}

TEST_CASE("LogLine: no text forges a line or a field, or hides something", "[log]") {
  const std::string forged = "a\" b=\"1\"\ntime=x\\ \x1b[2J\t\u200b\u202e\u2028\x7f \xff";
  const std::string shown = "a\" b=\"1\" time=x\\ <U+001B>[2J <U+200B><U+202E><U+2028><U+007F> \ufffd";
  CHECK(Text({{"a", forged}}).find("a=\"a\\\" b=\\\"1\\\" time=x\\\\ <U+001B>[2J <U+200B>") != std::string::npos);
  CHECK(Text({{"a", forged}}).find('\n') == Text({{"a", forged}}).size() - 1);
  CHECK(Parsed({{"a", forged}})["a"] == shown);
  CHECK(Parsed({}, forged)["message"] == shown);
}

TEST_CASE("LogLine: every byte and every kind of character is valid JSON", "[log]") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = "<" + std::string(1, static_cast<char>(byte)) + ">";
    CAPTURE(byte);
    CHECK(Parsed({{"text", text}}, text)["text"] == Parsed({{"text", text}}, text)["message"]);
  }
  CHECK(Parsed({{"text", "Grüße, 日本語 \U0001F600"}})["text"] == "Grüße, 日本語 \U0001F600");
}

}  // namespace reprise::test::log_line_test
