#include "crypto/time_stamp.h"

#include <string>

#include "crypto/digest.h"
#include "support/fixtures.h"
#include "support/source_directory.h"
#include "support/test.h"

namespace reprise::time_stamp_test {
namespace {

// Replies about 64 zero bytes of an authority whose certificate holds in 2020 alone.
std::string Sample(const char* name) { return SourceDirectory() + "/tests/data/time_stamp/" + name; }

Result<std::string> TimeIn(const char* reply, char byte, const std::string& authority = Sample("authority.pem")) {
  return TimeOfStamp(test::ReadText(Sample(reply)), Sha256Bytes({std::string(64, byte)}), authority);
}

}  // namespace

TEST_CASE("TimeOfStamp: a certificate must have held at the time of the stamp, and may have expired", "[crypto]") {
  CHECK(TimeIn("expired_since.tsr", '\0') == "Jun  1 12:00:00 2020 GMT");
  const auto late = TimeIn("expired_before.tsr", '\0');
  REQUIRE_FALSE(late);
  CHECK(late.error().message ==
        "the time stamp is not by that authority, or its certificate does not hold: "
        "Verify error:certificate has expired");
  CHECK(TimeIn("expired_before.tsr", '\0', "") == "Jun  1 12:00:00 2022 GMT");  // nobody vouches for it
}

TEST_CASE("TimeOfStamp: another bundle's stamp and a refusal are told apart from a bad certificate", "[crypto]") {
  const auto other = TimeIn("expired_since.tsr", 'x');
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "the time stamp is not of this bundle");
  const auto refused = TimeIn("refused.tsr", '\0');
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCorruption);
  CHECK(refused.error().message == "the authority gave no time stamp: Message digest algorithm is not supported.");
}

}  // namespace reprise::time_stamp_test
