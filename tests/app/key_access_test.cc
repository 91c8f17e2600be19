#include <unistd.h>

#include "app/keys.h"
#include "support/fixtures.h"
#include "support/test.h"

namespace reprise::test::key_access_test {
namespace {

std::string Read(const TempDirectory& dir, const std::string& content) {
  const auto text = ReadPassphrase(dir.Write("p", content));
  return text ? std::string(View(*text)) : "ERROR " + text.error().message;
}

}  // namespace

TEST_CASE("ReadPassphrase: the first line, without its end", "[keys]") {
  const TempDirectory dir;
  CHECK(Read(dir, "a b c") == "a b c");
  CHECK(Read(dir, "a b c\n") == "a b c");
  CHECK(Read(dir, "a b c\r\nmore\n") == "a b c");
  CHECK(Read(dir, " spaces stay \n") == " spaces stay ");
  CHECK(Read(dir, "\xc3\xbc\xff\n") == "\xc3\xbc\xff");
  CHECK(Read(dir, std::string(1024, 'x') + "\n") == std::string(1024, 'x'));
}

TEST_CASE("ReadPassphrase: what is no passphrase is refused without showing it", "[keys]") {
  const TempDirectory dir;
  CHECK(Read(dir, "").ends_with(" is empty"));
  CHECK(Read(dir, "\nsecond\n").ends_with(" is empty"));
  CHECK(Read(dir, std::string(1025, 'x')) == "ERROR the passphrase is longer than 1024 bytes");
  CHECK(Read(dir, std::string(100'000, 'x')) == "ERROR the passphrase is longer than 1024 bytes");
  CHECK_FALSE(ReadPassphrase(dir.File("none")));
  CHECK_FALSE(ReadPassphrase(dir.path()));
  const auto exposed = ReadPassphrase(dir.Write("loose", "secret words", 0644));
  REQUIRE_FALSE(exposed);
  CHECK(exposed.error().code == ErrorCode::kForbidden);
  CHECK(exposed.error().message.find("secret words") == std::string::npos);
}

TEST_CASE("NewPassphrase: a short one is refused", "[keys]") {
  const TempDirectory dir;
  CHECK_FALSE(NewPassphrase(dir.Write("p", "1234567\n")));
  CHECK(NewPassphrase(dir.Write("p", "12345678\n")));
}

}  // namespace reprise::test::key_access_test
