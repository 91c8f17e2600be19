#include <vector>

#include "base/text.h"
#include "support/test.h"

namespace reprise::test::did_you_mean_test {

TEST_CASE("Nearest: finds the word of a typo, and none for another word", "[base]") {
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

}  // namespace reprise::test::did_you_mean_test
