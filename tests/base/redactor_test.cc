#include <memory>
#include <string>
#include <vector>

#include "base/learned_secrets.h"
#include "base/text.h"
#include "support/test.h"

namespace reprise::redactor_test {

TEST_CASE("Redactor: removes secrets everywhere, the longest first", "[base]") {
  const Redactor redactor({"secret-key", "secret-key-long", "short", "", "secret-key"});
  CHECK(redactor.Redacted("a secret-key, a secret-key-long, short") == "a [redacted], a [redacted], short");
  CHECK(redactor.Redacted("secret-keysecret-key") == "[redacted][redacted]");
  CHECK(redactor.Redacted("") == "");
  CHECK(redactor.Redacted("secret-key") == "[redacted]");
  CHECK(redactor.Redacted("secret-ke secret-keys") == "secret-ke [redacted]s");
  CHECK(Redactor({"short"}).empty());
}

TEST_CASE("Redactor: removes what is learned later, the longest of all secrets first", "[base]") {
  const auto learned = std::make_shared<LearnedSecrets>();
  const Redactor redactor({"secret-key"}, learned);
  CHECK_FALSE(Redactor({}, learned).empty());
  const auto pieces = redactor.ForPieces();
  CHECK(redactor.Redacted("secret-key-long, secret-k") == "[redacted]-long, secret-k");
  for (const char* secret : {"secret-k", "secret-key-long", "short", "secret-k"}) learned->Add(secret);
  CHECK(*learned->All() == std::vector<std::string>{"secret-key-long", "secret-k"});
  CHECK(redactor.Redacted("secret-key-long, secret-key, secret-k, short") ==
        "[redacted], [redacted], [redacted], short");
  CHECK(pieces("it is secret-") == "it is ");
  CHECK(pieces("key-long.") == "[redacted].");
}

TEST_CASE("Redactor: takes linear time for a text that consists of secrets", "[base]") {
  constexpr std::size_t kTimes = 1 << 19;
  std::string text, expected;
  for (std::size_t i = 0; i < kTimes; ++i) {
    text += "12345678";
    expected += kRedacted;
  }
  CHECK((Redactor({"12345678"}).Redacted(std::move(text)) == expected));
}

TEST_CASE("Redactor: a text in pieces never shows a secret, however it is cut", "[base]") {
  const Redactor redactor({"secret-key", "key-of-mine"});
  const std::string text = "it is secret-key-of-mine, secret-secret-key; key-of-mine\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    const auto pieces = redactor.ForPieces();
    std::string shown;
    for (std::size_t at = 0; at < text.size(); at += size) shown += pieces(std::string_view(text).substr(at, size));
    INFO(size << ": " << shown);
    CHECK(shown.find("secret-key") == std::string::npos);
    CHECK(shown.find("key-of-mine") == std::string::npos);
    CHECK(shown.starts_with("it is "));
    CHECK(shown.find(", secret-[redacted]; [redacted]") != std::string::npos);
    CHECK(shown.ends_with("\n"));
  }
}

}  // namespace reprise::redactor_test
