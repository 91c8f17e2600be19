#include "approval/consents.h"

#include "support/faulty_file_system.h"
#include "support/memory_file_system.h"
#include "support/test.h"

namespace reprise::consents_test {
namespace {

const std::string kFile = "/data/approved_tools.json";
const ToolFingerprint kTool{.launch = "run it", .description = "a tool", .schema = "{}"};

}  // namespace

TEST_CASE("Consents: an approval that could not be taken back on disk still counts, and is tried again", "[approval]") {
  MemoryFileSystem disk;
  REQUIRE(disk.CreateDirectory("/data"));
  const auto look = [&] { return Consents(disk, kFile, nullptr).Look("server", "tool", kTool); };
  for (std::size_t at = 1;; ++at) {
    FaultyFileSystem faulty(disk, {.at = at});
    Consents consents(faulty, kFile, nullptr);
    if (!consents.Give("server", "tool", kTool)) REQUIRE(consents.Give("server", "tool", kTool));
    CHECK(look() == Consents::State::kGiven);
    if (!consents.Forget("server")) {
      CHECK(consents.Look("server", "tool", kTool) == Consents::State::kGiven);
      REQUIRE(consents.Forget("server"));
    }
    CHECK(look() == Consents::State::kNew);
    if (!faulty.fired()) break;
  }
}

}  // namespace reprise::consents_test
