#include "client/archive/proof_leaves.h"

#include <set>
#include <string>
#include <vector>

#include "crypto/proof.h"
#include "support/test.h"

namespace reprise::test::proof_leaves_test {
namespace {

Proof ProofOf(const std::vector<std::string>& texts) {
  Proof proof;
  for (const std::string& text : texts) proof.leaves.push_back({.hash = "00", .salt = "00", .text = text});
  return proof;
}

}  // namespace

TEST_CASE("LeaveOut: with a call go changes of files in all turns, whose digests are of what it wrote", "[archive]") {
  Proof proof = ProofOf({R"({"kind":"tool_call","turn":"int_001","event":{"id":"call_1"}})",
                         R"({"kind":"files_changed","turn":"int_001","event":{}})",
                         R"({"kind":"digest","turn":"int_002","call_id":"call_2"})",
                         R"({"kind":"files_changed","turn":"int_002","event":{}})"});
  CHECK(LeaveOut(proof, {0}) == 3);
  CHECK_FALSE(proof.leaves[2].is_left_out());
  CHECK(proof.leaves[3].is_left_out());
}

TEST_CASE("LeaveOut: with a call go grants in all turns, whose digests and ids are of its arguments", "[archive]") {
  Proof proof =
      ProofOf({R"({"kind":"tool_call","turn":"int_001","event":{"id":"call_1"}})",
               R"({"kind":"answer","turn":"int_001","event":{}})",
               R"({"kind":"grants_updated","turn":"int_002","event":{"grants":[{"arguments_digest":"sha256:00"}]}})"});
  CHECK(LeaveOut(proof, {0}) == 2);
  CHECK_FALSE(proof.leaves[1].is_left_out());
  CHECK(proof.leaves[2].is_left_out());
}

TEST_CASE("LeaveOut: without what was said the changes of files stay", "[archive]") {
  Proof proof = ProofOf(
      {R"({"kind":"said","turn":"int_001","text":"x"})", R"({"kind":"files_changed","turn":"int_001","event":{}})"});
  CHECK(LeaveOut(proof, {0}) == 1);
  CHECK_FALSE(proof.leaves[1].is_left_out());
}

}  // namespace reprise::test::proof_leaves_test
