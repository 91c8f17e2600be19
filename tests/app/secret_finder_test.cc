#include "app/secret_finder.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "support/test.h"

namespace reprise::secret_finder_test {
namespace {

// Put together here, so that no scanner takes this file for one with keys.
std::string Begin(const std::string& kind) { return "-----BEGIN " + kind + "-----"; }

std::string Taken(std::string text, const std::string& secret = "unused-secret") {
  SecretFinder finder({secret});
  finder.TakeFrom(text);
  return text;
}

}  // namespace

TEST_CASE("SecretFinder: takes private keys of all kinds, whole or cut off", "[app]") {
  const std::string lines = "MIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC+/==\n";
  for (const std::string& key :
       {Begin("PRIVATE KEY") + "\n" + lines,
        Begin("RSA PRIVATE KEY") + "\n" + lines + "[... 12 lines are left out ...]\n",
        Begin("RSA PRIVATE KEY") + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A1B\n\n" + lines,
        Begin("PGP PRIVATE KEY BLOCK") + "\nVersion: GnuPG v2 (GNU/Linux)\n\n" + lines,
        "1:" + Begin("PRIVATE KEY") + "\n2:MIIEvQIBADANBgkq\nmy_key.pem-3-hkiG9w0BAQEFAASC\n",
        "+" + Begin("PRIVATE KEY") + "\n+MIIEvQIBADANBgkq\n+hkiG9w0BAQEFAASC\n",
        "> " + Begin("PRIVATE KEY") + "\n> MIIEvQIBADANBgkq\n> hkiG9w0BAQEFAASC\n",
        Begin("PRIVATE KEY") + R"(\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC)"}) {
    INFO(key);
    const std::string taken = Taken(key);
    CHECK(taken.size() == key.size());
    CHECK(taken.find("MIIE") == std::string::npos);
    CHECK(taken.find("hkiG") == std::string::npos);
  }
}

TEST_CASE("SecretFinder: leaves what is behind a private key's end", "[app]") {
  const std::string key = Begin("PRIVATE KEY") + "\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----";
  CHECK(Taken(key + "\nThat was it.").ends_with("\nThat was it."));
}

TEST_CASE("SecretFinder: keeps escapes of JSON, and in other texts nothing but backslashes", "[app]") {
  const std::string secret = "dom\\user:Passw0rd\nand\\nothing";
  CHECK(Taken("it is " + secret, secret) == "it is xxx\\xxxxxxxxxxxxx\nxxx\\xxxxxxx");
  const std::string once = DumpJson(secret), twice = DumpJson(once);
  CHECK(Taken(once, secret) == R"("xxx\\xxxxxxxxxxxxx\nxxx\\xxxxxxx")");
  CHECK(Taken(twice, secret) == DumpJson(Taken(once, secret)));
}

TEST_CASE("SecretFinder: takes what JSON spells in other ways", "[app]") {
  CHECK(Taken(R"({"path":"abcd\/efgh\/1234567"})", "abcd/efgh/1234567") == R"({"path":"xxxx\/xxxx\/xxxxxxx"})");
  CHECK(Taken(R"("Jos\u00E9 Kr\u00fcger")", "José Krüger") == R"("xxx\u0078xxx\u0078xxx")");
  CHECK(Taken(R"("smile \ud83d\ude00!")", "smile 😀!") == R"("xxxxxx\u0078\u0078x")");
  const std::string token = R"("\u0067hp_)" + std::string(36, 'a') + R"(")";
  CHECK(Taken(token) == R"("\u0078xxx)" + std::string(36, 'x') + R"(")");
  // Arguments in an event, and JSON in those, also with what some parsers refuse.
  const std::string once = R"({"n":1e999,"n":"\ud800","t":)" + token + "}";
  const std::string twice = DumpJson({{"tool_input", once}}), thrice = DumpJson({{"event", twice}});
  CHECK(Taken(thrice) == DumpJson({{"event", DumpJson({{"tool_input", Taken(once)}})}}));
  CHECK(Taken(R"(C:\users\none "\u12" \)") == R"(C:\users\none "\u12" \)");
}

TEST_CASE("SecretFinder: takes tokens behind colours and what URLs encode", "[app]") {
  const std::string body(16, 'A');
  for (const std::string& token : {"ghp_" + std::string(36, 'a'), "glpat-" + std::string(20, 'a'), "AKIA" + body,
                                   "sk-" + std::string(20, 'a'), "xoxb-" + std::string(12, 'a')}) {
    for (const char* before :
         {"\x1b[32m", "\x1b[1;31m", "\\u001b[0m", "\\033[32m", "\x1b[m", "?t%3D", "?t%253D", "\x1b(B"}) {
      INFO(before << token);
      CHECK(Taken(before + token) == before + std::string(token.size(), 'x'));
      const std::string json = DumpJson(before + token);
      CHECK(ParseJson(Taken(json)).value_or(Json()) == before + std::string(token.size(), 'x'));
    }
  }
}

TEST_CASE("SecretFinder: takes all of words that overlap", "[app]") {
  SecretFinder finder({}, {"Anna Maria", "Maria Schmidt", "abcab", "Maria"});
  std::string text = "Anna Maria Schmidt, abcabcab, Maria.";
  CHECK(finder.TakeFrom(text));
  CHECK(text == "xxxxxxxxxxxxxxxxxx, xxxxxxxx, xxxxx.");
}

TEST_CASE("SecretFinder: learns secrets", "[app]") {
  SecretFinder finder({"the-secret"});
  finder.Learn("the-secret-that-came-later");
  finder.Learn("short");
  std::string text = "the-secret-that-came-later, the-secret, short";
  CHECK(finder.TakeFrom(text));
  CHECK(text == "xxxxxxxxxxxxxxxxxxxxxxxxxx, xxxxxxxxxx, short");
}

TEST_CASE("SecretFinder: takes secrets from what tools have named", "[app]") {
  SecretFinder finder({"hushed-secret"}, {});
  Json state = {{"id", "hushed-secret"}, {"memory", {{{"type", "file"}, {"id", "hushed-secret.txt"}}}}};
  finder.TakeFrom(state);
  CHECK(state == Json{{"id", "hushed-secret"}, {"memory", {{{"type", "file"}, {"id", "xxxxxxxxxxxxx.txt"}}}}});
}

TEST_CASE("SecretFinder: leaves what names other turns", "[app]") {
  SecretFinder finder({}, {"int"});
  Json record = {{"files_from", "int_001"}, {"resumed_from", {{"interaction_id", "int_001"}}}, {"text", "int_001"}};
  finder.TakeFrom(record);
  CHECK(record ==
        Json{{"files_from", "int_001"}, {"resumed_from", {{"interaction_id", "int_001"}}}, {"text", "xxx_001"}});
}

}  // namespace reprise::secret_finder_test
