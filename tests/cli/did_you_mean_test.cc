#include "cli/did_you_mean.h"

#include <vector>

#include "cli/unknown_variables.h"
#include "support/test.h"

namespace reprise::test::did_you_mean_test {

TEST_CASE("Nearest: a slip of the finger finds its word, another word does not", "[cli]") {
  const std::vector<std::string> known{"serve", "chat", "search", "--port", "--plain"};
  CHECK(Nearest("chta", known) == "chat");
  CHECK(Nearest("serv", known) == "serve");
  CHECK(Nearest("--prot", known) == "--port");
  CHECK(Nearest("--plan", known) == "--plain");
  CHECK_FALSE(Nearest("dance", known));
  CHECK_FALSE(Nearest("x", known));
  CHECK_FALSE(Nearest(std::string(10'000, 'a'), known));
  CHECK(DidYouMean("chta", known) == ", did you mean chat?");
  CHECK(DidYouMean("dance", known).empty());
}

TEST_CASE("UnknownVariables: a misspelt one is named with what was meant, and without its value", "[cli]") {
  const char* environment[] = {"PATH=/bin",      "REPRISE_MODEL=offline", "REPRISE_CONFIG=x",
                               "REPRISE_BIN=/x", "REPRISE_MODLE=secret",  nullptr};
  const auto unknown = UnknownVariables(environment);
  REQUIRE(unknown.size() == 1);
  CHECK(unknown.front() == "the variable REPRISE_MODLE is no setting, did you mean REPRISE_MODEL?");
}

}  // namespace reprise::test::did_you_mean_test
