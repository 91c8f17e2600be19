#include "app/unknown_variables.h"

#include "support/test.h"

namespace reprise::test::unknown_variables_test {

TEST_CASE("UnknownVariables: a misspelt one is named with what was meant, and without its value", "[app]") {
  const char* environment[] = {"PATH=/bin",      "REPRISE_MODEL=offline", "REPRISE_CONFIG=x",
                               "REPRISE_BIN=/x", "REPRISE_MODLE=secret",  nullptr};
  const auto unknown = UnknownVariables(environment);
  REQUIRE(unknown.size() == 1);
  CHECK(unknown.front() == "the variable REPRISE_MODLE is no setting, did you mean REPRISE_MODEL?");
}

}  // namespace reprise::test::unknown_variables_test
