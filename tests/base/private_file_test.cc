#include "base/private_file.h"

#include <sys/stat.h>

#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::private_file_test {

TEST_CASE("ReadToken: a private file's token is trimmed", "[token]") {
  const TempDirectory dir;
  CHECK(ReadToken(dir.Write("t", " 0123456789abcdef\n")).value() == "0123456789abcdef");
}

TEST_CASE("ReadToken: a file that others can read is refused", "[token]") {
  const TempDirectory dir;
  for (const mode_t mode : {0640, 0604, 0620, 0644}) {
    const auto token = ReadToken(dir.Write("t", "0123456789abcdef", mode));
    REQUIRE_FALSE(token.has_value());
    CHECK(token.error().code == ErrorCode::kForbidden);
  }
}

TEST_CASE("ReadToken: a token that is short or has a space is refused, and never shown", "[token]") {
  const TempDirectory dir;
  for (const char* text : {"", "\n", "0123456789abcde", "0123456789abcdef 0123456789abcdef", "0123456789abcdef\x01"}) {
    const auto token = ReadToken(dir.Write("t", text));
    REQUIRE_FALSE(token.has_value());
    CHECK(token.error().message.find("0123456789") == std::string::npos);
  }
  CHECK(ReadToken(dir.File("none")).error().code == ErrorCode::kNotFound);
}

TEST_CASE("ReadSmallFile: only regular files up to the limit", "[files]") {
  const TempDirectory dir;
  CHECK(ReadSmallFile(dir.Write("f", "abc"), 3).value() == "abc");
  CHECK(ReadSmallFile(dir.Write("f", "abcd"), 3).error().code == ErrorCode::kTooLarge);
  CHECK(ReadSmallFile(dir.path(), 3).error().code == ErrorCode::kInvalidArgument);
  REQUIRE(::mkfifo(dir.File("fifo").c_str(), 0600) == 0);
  CHECK(ReadSmallFile(dir.File("fifo"), 3).error().code == ErrorCode::kInvalidArgument);  // and does not wait
}

TEST_CASE("ReadOwnFile: a configuration that others could change is refused", "[files]") {
  const TempDirectory dir;
  CHECK(ReadOwnFile(dir.Write("f", "{}", 0644), 10).has_value());
  CHECK(ReadOwnFile(dir.Write("f", "{}", 0666), 10).error().code == ErrorCode::kForbidden);
  CHECK(ReadOwnFile(dir.Write("f", "{}", 0620), 10).error().code == ErrorCode::kForbidden);
}

}  // namespace reprise::test::private_file_test
